"""`ProtobufDecoder`, compiled if possible. `protobuf_pure.py` says what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load

if TYPE_CHECKING:
    from ottla.kernel.protobuf_pure import ProtobufDecoder

    IS_COMPILED: bool
else:
    _module = load("_protobuf", "protobuf_pure")
    ProtobufDecoder = _module.ProtobufDecoder
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "ProtobufDecoder"]
