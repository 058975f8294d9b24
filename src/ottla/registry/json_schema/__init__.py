"""JSON Schema: `node.py` is a place in a schema, `format.py` parses, `compatibility.py` and `contents.py` compare."""
