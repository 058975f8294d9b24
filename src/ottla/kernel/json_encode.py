"""`JsonEncoder`, compiled if possible; without that Python writes all rows. `json_encode.pyx` says what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load

if TYPE_CHECKING:
    from ottla.kernel.json_encode_pure import JsonEncoder

    IS_COMPILED: bool
else:
    _module = load("_json_encode", "json_encode_pure")
    JsonEncoder = _module.JsonEncoder
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "JsonEncoder"]
