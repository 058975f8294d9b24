"""Records with schemas of a registry, on the side of those who read and write them: `ottla.registry` is the server.

To trace a value into columns, read `registry.py` (which schema the reader has, asked for once) -> `columns.py` (one
decoder for each format) -> `avro/columns.py` (a schema as columns) -> `avro/resolving.py` (writer's and reader's
schema to a program) -> `ottla.kernel.avro`, which carries it out. `rows.py` is the same for single values, as the
command line and Streams have them. `encoding.py` goes the other way.

Executors run this, and may have nothing but PySpark and PyArrow.
"""
