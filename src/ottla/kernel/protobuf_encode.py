"""`ProtobufEncoder`, compiled if possible. `protobuf_encode_pure.py` says what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load

if TYPE_CHECKING:
    from ottla.kernel.protobuf_encode_pure import ProtobufEncoder

    IS_COMPILED: bool
else:
    _module = load("_protobuf_encode", "protobuf_encode_pure")
    ProtobufEncoder = _module.ProtobufEncoder
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "ProtobufEncoder"]
