"""SQL expressions in topologies: `stream.filter(sql("amount > 100"))`.

An expression is read once, when the topology is made, and becomes two things: text for Spark, which evaluates it on
columns, and a function for the test driver and for places that Spark's columns do not reach. Both come from the same
typed tree (`expressions.py`), and only what both do alike is in it. Why so: docs/decisions/0016-sql-in-topologies.md.
"""
