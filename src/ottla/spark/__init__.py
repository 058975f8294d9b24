"""Topics as DataFrames: a source, a sink that writes exactly once, and a session that has both.

    spark = ottla.spark.session(app="orders")
    orders = spark.readStream.format("ottla").option(...).load()
    ottla.spark.write_stream(orders, name="orders", topic="orders-clean", ...)

On a session of your own, `ottla.spark.register(spark)` makes the format known.

Names are loaded when they are first used: executors import parts of this package and need no more than those.
No module here may be called like one of them, or importing it would hide the function behind the module.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.access.bearer import BearerLogin
    from ottla.schemas.registry import SchemaRegistry
    from ottla.spark.registered import from_registry, to_registry
    from ottla.spark.session_builder import session
    from ottla.spark.sink.progress import committed_offsets, forget, published
    from ottla.spark.sink.streaming import WriteQuery, write_stream
    from ottla.spark.source.datasource import register

_HOME = {
    "BearerLogin": "ottla.client.access.bearer",
    "SchemaRegistry": "ottla.schemas.registry",
    "WriteQuery": "ottla.spark.sink.streaming",
    "committed_offsets": "ottla.spark.sink.progress",
    "forget": "ottla.spark.sink.progress",
    "from_registry": "ottla.spark.registered",
    "published": "ottla.spark.sink.progress",
    "register": "ottla.spark.source.datasource",
    "session": "ottla.spark.session_builder",
    "to_registry": "ottla.spark.registered",
    "write_stream": "ottla.spark.sink.streaming",
}

__all__ = [
    "BearerLogin",
    "SchemaRegistry",
    "WriteQuery",
    "committed_offsets",
    "forget",
    "from_registry",
    "published",
    "register",
    "session",
    "to_registry",
    "write_stream",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
