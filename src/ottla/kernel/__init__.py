"""The hot loops that touch each record: of the Spark pipelines, record batches to Arrow columns and back, and Avro
values to columns and back; of the broker, the walk over what enters a compacted topic, and what is counted of each
request, neither of which needs PyArrow.

Every module exists twice: compiled (`decode.pyx`, built as `_decode`) and in plain Python (`decode_pure.py`). Both pass
the same tests; the compiled one is used where it can be loaded. Executors may have nothing but PySpark and PyArrow, so
nothing here imports more than these, and of Ottla only `ottla.common`.
"""
