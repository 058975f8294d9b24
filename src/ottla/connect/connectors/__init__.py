"""Connectors that ship."""
