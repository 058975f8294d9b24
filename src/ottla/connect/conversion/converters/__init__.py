"""Converters by Kafka's names: the class, its last part (`JsonConverter`), or that without its suffix (`Json`)."""

from __future__ import annotations

from ottla.connect.conversion.converters.avro import AvroConverter
from ottla.connect.conversion.converters.base import Converter, OnFailure, Piece
from ottla.connect.conversion.converters.headers import SimpleHeaderConverter
from ottla.connect.conversion.converters.json import JsonConverter
from ottla.connect.conversion.converters.json_registered import JsonSchemaConverter
from ottla.connect.conversion.converters.plain import PLAIN
from ottla.connect.conversion.converters.protobuf import ProtobufConverter

ALL: tuple[type[Converter], ...] = (
    *PLAIN,
    JsonConverter,
    SimpleHeaderConverter,
    AvroConverter,
    JsonSchemaConverter,
    ProtobufConverter,
)


def _names(each: type[Converter]) -> list[str]:
    simple = each.class_name.rpartition(".")[2]
    return [each.class_name, simple, simple.removesuffix("Converter")]


BY_NAME: dict[str, type[Converter]] = {name: each for each in ALL for name in _names(each)}

__all__ = ["ALL", "BY_NAME", "Converter", "OnFailure", "Piece"]
