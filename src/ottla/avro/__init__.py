"""Avro: `schema.py` is what a schema is, `parse.py` reads one, `text.py` writes one, `compatibility.py`
compares two."""
