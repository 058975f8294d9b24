"""`python -m bench`: Ottla and Apache Kafka side by side, driven by the same clients. See `__main__.py`."""
