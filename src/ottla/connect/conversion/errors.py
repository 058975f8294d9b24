"""What is wrong with one record: the record fails, with Kafka Connect's name for the exception, and others go on.

That the other side is away is not among these: `ottla.connect.api.Outage` is never the fault of a record.
"""

from __future__ import annotations

from typing import ClassVar

from ottla.common.errors import OttlaError


class RecordError(OttlaError):
    """`java`: the class that Kafka Connect would have thrown, which dead letters name."""

    java: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"


class DataError(RecordError):
    """The data is not what a converter or a transform takes."""

    java: ClassVar[str] = "org.apache.kafka.connect.errors.DataException"


class SchemaError(RecordError):
    """A schema cannot be made as it is asked for."""

    java: ClassVar[str] = "org.apache.kafka.connect.errors.SchemaBuilderException"


class ArgumentError(RecordError):
    """A setting names something that the record does not have."""

    java: ClassVar[str] = "java.lang.IllegalArgumentException"


def java_name(error: BaseException) -> str:
    if isinstance(error, RecordError):
        return error.java
    if isinstance(error, OverflowError | ValueError | TypeError | ArithmeticError):
        return DataError.java
    return f"{type(error).__module__}.{type(error).__qualname__}"
