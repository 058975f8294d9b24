"""What a DataFrame must look like to be written, and the same columns in the form that the kernel takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

HEADERS = "array<struct<key:string,value:binary>>"
# As Spark's Kafka integration has them, and `timestamp`, which it lacks. What else there is goes nowhere.
_ACCEPTED = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": (HEADERS,),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
_SQL = {
    "key": "cast(key as binary) as key",
    "value": "cast(value as binary) as value",
    "headers": "headers",
    "topic": "topic",
    "partition": "partition",
    "timestamp": "unix_millis(timestamp) as timestamp",
}
_HINTS = {
    "key": "cast it to string or binary",
    "value": "use to_json(struct(...)) or cast it to string or binary",
    "headers": f"make it {HEADERS}",
    "topic": "cast it to string",
    "partition": "cast it to int",
    "timestamp": "use to_timestamp(...)",
}


def check_columns(frame: DataFrame, topic: str | None) -> None:
    """Raises OttlaError that says what is wrong with the columns."""
    types: dict[str, DataType] = {field.name: field.dataType for field in frame.schema.fields}
    if "value" not in types:
        raise OttlaError(f"a column 'value' is missing, there are only: {', '.join(types)}.")
    if topic is None and "topic" not in types:
        raise OttlaError("say where rows go: name a topic, or give the DataFrame a column 'topic'.")
    for name, accepted in _ACCEPTED.items():
        found = types[name].simpleString() if name in types else None
        if found is not None and found not in (*accepted, "void"):
            raise OttlaError(f"the column '{name}' is {found}, which cannot be written: {_HINTS[name]}.")


def shaped(frame: DataFrame) -> DataFrame:
    """Only the columns that are written."""
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    return frame.selectExpr(*(_SQL[name] for name in _SQL if types.get(name, "void") != "void" or name == "value"))


def merged(frames: list[DataFrame]) -> DataFrame:
    """Several shaped frames as one."""
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame, allowMissingColumns=True)
    return whole
