"""The language of streams and tables: each call adds nodes to a topology."""
