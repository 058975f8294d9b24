"""Databases: tables in and out of topics (`tables`), and the changes of tables as they happen (`postgres`, `mysql`).

`tables` asks with SQL and works with every database that SQLAlchemy knows. The other two read the database's own log,
so that they see every change, also deletes, and in order. What those have in common is in `changes`.
"""
