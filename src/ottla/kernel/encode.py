"""`BatchEncoder`, `route` and `partition_for_key`, compiled if possible. `encode_pure.py` says what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load

if TYPE_CHECKING:
    from ottla.kernel.encode_pure import BatchEncoder, Encoded, partition_for_key, route

    IS_COMPILED: bool
else:
    _module = load("_encode", "encode_pure")
    BatchEncoder = _module.BatchEncoder
    Encoded = _module.Encoded
    partition_for_key = _module.partition_for_key
    route = _module.route
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "BatchEncoder", "Encoded", "partition_for_key", "route"]
