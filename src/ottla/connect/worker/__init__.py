"""A worker: it owns some of a cluster's connectors, runs each in a thread, and answers for all of them."""
