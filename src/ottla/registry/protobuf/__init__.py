"""Protobuf: a schema is a FileDescriptorProto, whether it came as text (`text_parse.py`) or as bytes; `text.py` writes
it, `linking.py` checks it, `compatibility.py` compares two."""
