"""Crashes, power cuts, full and failing disks: nothing acknowledged is lost, nothing appears twice."""
