"""A connector's work: rounds, each of which is a Spark job and leaves everything decided in the cluster behind."""
