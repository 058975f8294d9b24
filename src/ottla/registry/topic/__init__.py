"""The topic `_schemas`: `writer.py` appends to it and shuts earlier writers out, `reader.py` follows it, `election.py`
says which instance writes."""
