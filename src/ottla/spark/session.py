"""`session`: a SparkSession with the settings that suit pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(*, app: str, master: str = "local[*]", **conf: Any) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app).master(master)
    for name, value in conf.items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()
