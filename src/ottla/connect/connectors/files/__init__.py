"""Files of a folder, here or in an object store, to topics and back, exactly once: CSV, JSON, Parquet, ORC, text.

Folders are those of PyArrow's file systems: a path, `file://`, `s3://`, `gs://`, `abfs://`, `hdfs://`.
"""
