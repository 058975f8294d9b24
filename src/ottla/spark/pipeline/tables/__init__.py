"""Topics as tables: the last value of each key, kept up to date by reading what is new.

To trace a table, read `topics.py` (`Topics.table`) -> `winners.py` (which record of a key counts) -> `table.py` (how it
follows its topic) -> `walked.py` (rows in Spark's memory), or `lookup_join.py` (joins in a plan) -> `looked_up.py` ->
`store.py` (rows that are looked up) -> `collection.py` (all tables of a query, and the manifest).
"""
