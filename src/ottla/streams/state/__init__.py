"""State stores, pure: what they are (`specs.py`), what they keep bytes in (`bytes_store.py`), and each kind."""
