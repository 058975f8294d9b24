"""One module for each page of the navigation: what it shows, and what it changes."""

from __future__ import annotations

from ottla.console.pages import (
    access,
    audit,
    brokers,
    connectors,
    groups,
    latency,
    overview,
    partitions,
    pipelines,
    processes,
    records,
    schemas,
    topics,
    traces,
    transactions,
)

PAGES = (
    overview,
    brokers,
    partitions,
    latency,
    topics,
    records,
    traces,
    processes,
    schemas,
    groups,
    transactions,
    pipelines,
    connectors,
    access,
    audit,
)

__all__ = ["PAGES"]
