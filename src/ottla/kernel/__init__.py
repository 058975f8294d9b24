"""The hot loops of the Spark pipelines: record batches to Arrow columns and back.

Every module exists twice: compiled (`decode.pyx`, built as `_decode`) and in plain Python (`decode_pure.py`). Both pass
the same tests; the compiled one is used where it can be loaded. Executors may have nothing but PySpark and PyArrow, so
nothing here imports more than these, and of Ottla only `ottla.common`.
"""
