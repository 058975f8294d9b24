"""SQL expressions in topologies: `stream.filter(sql("amount > 100"))`.

An expression is read once, when the topology is made, and becomes a typed tree (`expressions.py`). It is evaluated
record by record in the test driver, and on columns where a topology begins with expressions (`engine/stages.py`). Why
so: docs/decisions/0016-sql-in-topologies.md and 0022-expressions-on-columns-in-the-task.md.
"""
