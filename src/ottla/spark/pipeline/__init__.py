"""Pipelines that `ottla pipeline run FILE` runs: topics in, a query, topics out, exactly once.

    from ottla.spark.pipeline import pipeline

    @pipeline(to="orders-by-country", key="country")
    def orders_by_country(topics):
        orders = topics.stream("orders", "customer string not null, euro double")
        customers = topics.table("customers", "customer string, country string")
        return orders.join(customers, "customer").select("country", "euro")

To read how it works: `definition` says what a pipeline is, `loading` gets one from a file, `topics` and `decoding` are
what it reads, `outputs` what it writes, `runner` starts it and keeps it alive, `home` is where it lives on disk.

What needs PySpark is loaded when it is used, so that the command line can speak about pipelines without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ottla.spark.pipeline.definition import Pipeline, pipeline

if TYPE_CHECKING:
    from ottla.spark.pipeline.topics import Topics

__all__ = ["Pipeline", "Topics", "pipeline"]


def __getattr__(name: str) -> Any:
    if name != "Topics":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("ottla.spark.pipeline.topics").Topics
