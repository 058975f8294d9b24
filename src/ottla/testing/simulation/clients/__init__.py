"""Clients that try again until they succeed, and hold the cluster to what they were told."""
