"""What a DataFrame must look like to be written, and the same columns in the form that the kernel takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

HEADERS = "array<struct<key:string,value:binary>>"
# With lineage on: which record a row was made of, as TOPIC/PARTITION/OFFSET. A row without it is of its batch.
LINEAGE = "_lineage"
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
    "timestamp": "timestamp",
}
_HINTS = {
    "key": "cast it to string or binary",
    "value": "use to_json(struct(...)) or cast it to string or binary",
    "headers": f"make it {HEADERS}",
    "topic": "cast it to string",
    "partition": "cast it to int",
    "timestamp": "use to_timestamp(...)",
}


def described(result: Any) -> str:
    """What a function returned in the place of DataFrames."""
    if result is None:
        return "nothing"
    empty = "an empty " if hasattr(result, "__len__") and not len(result) else "a "
    inside = ""
    if isinstance(result, list | tuple) and result:
        inside = f" with a {type(result[0]).__name__} in it"
    return f"{empty}{type(result).__name__}{inside}"


def check_columns(schema: StructType, topic: str | None, *, lineage: bool = False) -> None:
    """Raises OttlaError that says what is wrong with the columns."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in types:
        raise OttlaError(f"a column 'value' is missing, there are only: {', '.join(types)}.")
    if topic is None and "topic" not in types:
        raise OttlaError("say where rows go: name a topic, or give the DataFrame a column 'topic'.")
    if lineage and types.get(LINEAGE, "void") not in ("string", "void"):
        raise OttlaError(f"the column '{LINEAGE}' is {types[LINEAGE]}: make it text, TOPIC/PARTITION/OFFSET.")
    for name, accepted in _ACCEPTED.items():
        found = types.get(name, "void")
        if found not in (*accepted, "void"):
            raise OttlaError(f"the column '{name}' is {found}, which cannot be written: {_HINTS[name]}.")


def shaped(frame: DataFrame, *, lineage: bool = False) -> DataFrame:
    """Only the columns that are written, so that no others travel."""
    written = {**_SQL, LINEAGE: LINEAGE} if lineage else _SQL
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    if all(name in written and (kind != "void" or name == "value") for name, kind in types.items()):
        return frame  # another step in the plan would cost a small batch a tenth of its time
    return frame.selectExpr(
        *(written[name] for name in written if types.get(name, "void") != "void" or name == "value")
    )


def with_header_lists(frame: DataFrame) -> DataFrame:
    """Empty lists where there are no headers, for frames whose rows go to Python.

    Spark asks after every row how large the batch for Python has become, and Arrow then goes through all lists since
    the last one that is not null: with 10,000 rows without headers, that is most of what Spark does with them."""
    if "headers" not in frame.columns:
        return frame
    from pyspark.sql import functions as F

    return frame.withColumn("headers", F.expr(f"coalesce(headers, CAST(array() AS {HEADERS}))"))


def merged(frames: list[DataFrame]) -> DataFrame:
    """Several shaped frames as one."""
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame, allowMissingColumns=True)
    return whole


def shaped_arrow(batch: pa.RecordBatch) -> dict[str, Any]:
    """The same of an Arrow batch, for where Spark gives us rows as they are."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    found = {name: columns[name] for name in _SQL if name in columns and not pa.types.is_null(columns[name].type)}
    found["value"] = columns["value"]
    if "headers" in found and not len(found["headers"].flatten()):
        del found["headers"]  # nobody has any
    if LINEAGE in columns and not pa.types.is_null(columns[LINEAGE].type):
        found[LINEAGE] = columns[LINEAGE]
    for name in ("key", "value"):
        if name in found:
            found[name] = found[name].cast(pa.binary())
    if "timestamp" in found:
        found["timestamp"] = found["timestamp"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
    return found
