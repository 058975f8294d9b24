"""One module for each page of the navigation: what it shows, and what it changes."""

from __future__ import annotations

from ottla.console.pages import overview, records, topics

PAGES = (overview, topics, records)

__all__ = ["PAGES"]
