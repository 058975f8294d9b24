"""DataFrames to topics. Executors encode, the driver alone publishes, in one transaction.

A producer id that executors shared would lose or double records when tasks are retried or run twice: brokers drop
duplicates by sequence number, never by content, and Spark does not promise the same rows on a retry. So executors only
turn rows into compressed batches. Spark hands the driver the result of exactly one attempt of each task, and the driver
writes them with a producer that nobody else has. `docs/exactly-once-on-spark.md` has the whole argument.
"""
