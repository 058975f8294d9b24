"""The benchmark itself: its arithmetic and its load generator."""
