"""Topics as Spark DataFrames, batch and streaming: `ottla.spark.register(spark)`, then `format("ottla")`."""

from __future__ import annotations

from ottla.spark.source.datasource import register

__all__ = ["register"]
