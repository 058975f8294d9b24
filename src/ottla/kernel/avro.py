"""`AvroDecoder` and what it needs, compiled if possible. `avro_pure.py` says what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load

if TYPE_CHECKING:
    from ottla.kernel.avro_pure import AvroDecoder, AvroProgram, schema_ids

    IS_COMPILED: bool
else:
    _module = load("_avro", "avro_pure")
    AvroDecoder, AvroProgram, schema_ids = _module.AvroDecoder, _module.AvroProgram, _module.schema_ids
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "AvroDecoder", "AvroProgram", "schema_ids"]
