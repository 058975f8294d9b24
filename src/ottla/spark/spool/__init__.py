"""What executors encoded waits on the driver's disk until all of it is there; only then does a transaction open."""
