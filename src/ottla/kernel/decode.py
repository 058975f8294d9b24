"""`Decoder` and `fetched_until`, compiled if possible. `decode_pure.py` says what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load

if TYPE_CHECKING:
    from ottla.kernel.decode_pure import Decoder, fetched_until

    IS_COMPILED: bool
else:
    _module = load("_decode", "decode_pure")
    Decoder = _module.Decoder
    fetched_until = _module.fetched_until
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "Decoder", "fetched_until"]
