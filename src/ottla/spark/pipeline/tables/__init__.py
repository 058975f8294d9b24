"""Topics as tables: the last value of each key, kept up to date by reading what is new.

To trace a table, read `topics.py` (`Topics.table`) -> `winners.py` (which record of a key counts) -> `table.py` (what
Spark keeps of it, and how it follows its topic) -> `collection.py` (all tables of a query, and the manifest).
"""
