"""What a cluster is, asked for over the wire and kept as snapshots; and what can be changed in it."""
