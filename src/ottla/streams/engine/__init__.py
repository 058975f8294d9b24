"""Topologies on Spark: what runs on the driver (`application.py`) and what runs on executors (`running.py`).

A task of a topology runs inside the job that encodes a micro-batch, next to the records that it reads. Its state is
what its changelog topics say: the changes of a batch are records of the same transaction as its results and its
offsets, so they are there together or not at all. Why so: docs/decisions/0015-state-is-in-the-log.md.
"""
