"""`AvroEncoder`, compiled if possible. `avro_encode_pure.py` says what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load

if TYPE_CHECKING:
    from ottla.kernel.avro_encode_pure import AvroEncoder

    IS_COMPILED: bool
else:
    _module = load("_avro_encode", "avro_encode_pure")
    AvroEncoder = _module.AvroEncoder
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "AvroEncoder"]
