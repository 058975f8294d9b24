"""Transforms by Kafka's names: `org.apache.kafka.connect.transforms.Cast$Value`, or `Cast$Value`."""

from __future__ import annotations

from ottla.connect.conversion.transforms.base import PACKAGE, Transform
from ottla.connect.conversion.transforms.cast import Cast
from ottla.connect.conversion.transforms.fields import MaskField, ReplaceField
from ottla.connect.conversion.transforms.headers import DropHeaders, HeaderFrom, InsertHeader
from ottla.connect.conversion.transforms.inserting import InsertField
from ottla.connect.conversion.transforms.routing import Filter, RegexRouter, TimestampRouter
from ottla.connect.conversion.transforms.shape import (
    ExtractField,
    Flatten,
    HoistField,
    SetSchemaMetadata,
    ValueToKey,
)
from ottla.connect.conversion.transforms.timestamps import TimestampConverter

ALL: tuple[type[Transform], ...] = (
    Cast, DropHeaders, ExtractField, Filter, Flatten, HeaderFrom, HoistField, InsertField, InsertHeader, MaskField,
    RegexRouter, ReplaceField, SetSchemaMetadata, TimestampConverter, TimestampRouter, ValueToKey,
)  # fmt: skip


def _named() -> dict[str, tuple[type[Transform], str]]:
    found = {}
    for each in ALL:
        for suffix, part in (("$Key", "key"), ("$Value", "value")) if each.has_parts else (("", "value"),):
            for prefix in ("", f"{PACKAGE}."):
                found[f"{prefix}{each.name}{suffix}"] = (each, part)
    return found


# The class, and which part of a record it is about.
BY_NAME = _named()

__all__ = ["ALL", "BY_NAME", "Transform"]
