"""`JsonDecoder`, compiled if possible; without that Python reads all values. `json_values.pyx` says what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load

if TYPE_CHECKING:
    from ottla.kernel.json_values_pure import JsonDecoder

    IS_COMPILED: bool
else:
    _module = load("_json_values", "json_values_pure")
    JsonDecoder = _module.JsonDecoder
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "JsonDecoder"]
