"""Values of records as columns, and the records whose values do not fit, with the reason.

A record is bad when it has no value, when the value is no JSON of the wanted types, when a column that is `not null` is
missing, or when it breaks a rule of the pipeline's own. It goes to the dead-letter topic as it came, key, value and
headers, with headers more that say why and from where.

Good rows and dead letters are two branches of one plan, each of which judges every record. So a rule must say the same
of a record each time: one that is not deterministic would put records into both outputs, or into neither.

Spark's parser ends where the first JSON value does, whatever follows. So it is given the value as the first item of an
array, whose last item has a name that nobody else knows: only if that one comes second was there one value and no more.

Values that were written with a schema registry are decoded on executors, whole Arrow arrays at a time, and come with
their own reasons (`ottla.spark.registered`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.common.errors import OttlaError
from ottla.schemas.registry import SchemaRegistry

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

    from ottla.spark.registered import RegisteredColumns

HEADERS = "array<struct<key:string,value:binary>>"
# Everything that the source said about a record, under one name that no decoded column is likely to have.
RECORD = "record"
_UNFIT = "_unfit"
_DECODED = "_decoded"
REASON = "_reason"
_PARSED = "_parsed"
# The decoded key, and what decoding gave.
KEY = "key"
_PARSED_KEY = "_parsed_key"
# Of the array and of what ends it.
_END = f"_end_{secrets.token_hex(8)}"
_RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


def parse_schema(schema: str | StructType | SchemaRegistry, topic: str = "") -> StructType:
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import StructType

    if isinstance(schema, SchemaRegistry):
        from ottla.spark.registered import RegisteredColumns

        return RegisteredColumns.of(schema.for_topic(topic))
    if isinstance(schema, StructType):
        return schema
    try:
        parsed = StructType.fromDDL(schema)
    except AnalysisException:
        parsed = None
    # One word alone is a type to Spark, such as `int`.
    if not isinstance(parsed, StructType):
        raise OttlaError(f"'{schema}' is no list of columns: write them as in `customer string not null, euro double`.")
    return parsed


def of_keys(schema: SchemaRegistry, topic: str) -> RegisteredColumns:
    from ottla.spark.registered import RegisteredColumns

    return RegisteredColumns.of(schema.for_topic(topic, "key"))


def judged(
    raw: DataFrame, schema: StructType, expect: Mapping[str, str] | None, key: RegisteredColumns | None = None
) -> DataFrame:
    """`raw` as the column `record`, the decoded columns, and why the record is bad, which is null for good ones.
    `key`: how keys are decoded into the column of that name."""
    from pyspark.sql import functions as F

    record = F.struct(*(F.col(name) for name in _RECORD_COLUMNS))
    parsed_key, carried = [], []
    if key is not None:
        if any(field.name.lower() == KEY for field in schema.fields):
            raise OttlaError(
                f"the values have a column '{KEY}' themselves, where the decoded key would be: decode the key with "
                'from_registry("record.key", registry.of(SUBJECT)) instead.'
            )
        parsed_key, carried = [key.parsed(F.col("key")).alias(_PARSED_KEY)], [_PARSED_KEY]
    if (registered := _registered(schema)) is not None:
        for field in schema.fields:
            _nullable(field)
        frame = raw.select(record.alias(RECORD), registered.parsed(F.col("value")).alias(_PARSED), *parsed_key)
        frame = frame.select(RECORD, f"{_PARSED}.decoded.*", F.col(f"{_PARSED}.reason").alias(_UNFIT), *carried)
        return _with_reason(frame, schema, expect, key)
    frame = raw.select(record.alias(RECORD), _parsed(F.col("value"), schema).alias(_PARSED), *parsed_key)
    items = F.col(f"{_PARSED}.{_END}")
    is_unfit = F.col(f"{_PARSED}.{_UNFIT}").isNotNull() | F.get(items, F.lit(1))[_END].isNull()
    frame = frame.select(RECORD, F.get(items, F.lit(0)).alias(_DECODED), is_unfit.alias(_UNFIT), *carried)
    is_unfit = F.col(_UNFIT) | F.col(_DECODED).isNull()
    frame = frame.select(RECORD, f"{_DECODED}.*", is_unfit.alias(_UNFIT), *carried).drop(_END)
    return _with_reason(frame, schema, expect, key)


def _with_reason(
    frame: DataFrame, schema: StructType, expect: Mapping[str, str] | None, key: RegisteredColumns | None
) -> DataFrame:
    from pyspark.sql import functions as F

    if key is not None:
        decoded_key = F.col(f"{_PARSED_KEY}.decoded")
        frame = frame.withColumn(KEY, decoded_key["value"] if key.is_plain else decoded_key)
    _refuse_chance(frame, expect or {})
    return frame.withColumn(REASON, _reason(schema, expect, has_key=key is not None))


def decoded(value: Column, schema: StructType) -> Column:
    """The columns of a value that was judged to be good before, as a struct."""
    from pyspark.sql import functions as F

    if (registered := _registered(schema)) is not None:
        return registered.parsed(value)["decoded"]
    return F.get(_parsed(value, schema)[_END], F.lit(0))


def _registered(schema: StructType) -> RegisteredColumns | None:
    from ottla.spark.registered import RegisteredColumns

    return schema if isinstance(schema, RegisteredColumns) else None


def _parsed(value: Column, schema: StructType) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType

    columns = StructType([_nullable(field) for field in schema.fields]).add(_END, IntegerType())
    wanted = StructType().add(_END, ArrayType(columns)).add(_UNFIT, StringType())
    text = F.concat(F.lit(f'{{"{_END}":['), value.cast("string"), F.lit(f',{{"{_END}":1}}]}}'))
    # The option also keeps Spark from leaving columns out that the query does not use: all of them are checked.
    parsed = F.from_json(text, wanted, {"columnNameOfCorruptRecord": _UNFIT})
    # Spark would repeat the parsing in every place that asks for a part of it. It takes what has to do with the number
    # of the partition for chance, which is never repeated: half the time, measured.
    return F.when(F.spark_partition_id() >= 0, parsed)


def good_rows(judged_rows: DataFrame) -> DataFrame:
    return judged_rows.where(f"{REASON} is null").drop(REASON, _UNFIT, _PARSED_KEY)


def dead_letters(judged_rows: DataFrame, topic: str, pipeline: str) -> DataFrame:
    """Bad records as they are written; `ottla consume TOPIC -f '%h %s\\n'` shows them with their reasons."""
    from pyspark.sql import functions as F

    def header(name: str, text: Column) -> Column:
        return F.struct(F.lit(name).alias("key"), text.cast("string").cast("binary").alias("value"))

    record = F.col(RECORD)
    about = F.array(
        header("ottla.reason", F.col(REASON)),
        header("ottla.pipeline", F.lit(pipeline)),
        header("ottla.source.topic", record["topic"]),
        header("ottla.source.partition", record["partition"]),
        header("ottla.source.offset", record["offset"]),
        header("ottla.source.timestamp", F.unix_millis(record["timestamp"])),
    ).cast(HEADERS)
    own = F.coalesce(record["headers"], F.array().cast(HEADERS))
    return judged_rows.where(f"{REASON} is not null").select(
        F.lit(topic).alias("topic"),
        record["key"].alias("key"),
        record["value"].alias("value"),
        F.concat(own, about).alias("headers"),
    )


def _nullable(field: StructField) -> StructField:
    from pyspark.sql.types import StructField

    if field.name.lower() in (RECORD, _UNFIT, REASON, _DECODED, _PARSED, _PARSED_KEY):
        raise OttlaError(f"a column cannot be called '{field.name}' here: the pipeline needs that name itself.")
    return StructField(field.name, field.dataType, True)


def _refuse_chance(frame: DataFrame, expect: Mapping[str, str]) -> None:
    from pyspark.sql import functions as F

    for sentence, condition in expect.items():
        judged_once = frame.select(F.expr(condition).alias(REASON))
        if not judged_once._jdf.queryExecution().analyzed().expressions().apply(0).deterministic():
            raise OttlaError(
                f"the rule '{condition}' ({sentence}) may say another thing each time that a record is judged, and "
                "it is judged more than once: leave out what depends on chance, such as rand() or uuid()."
            )


def _reason(schema: StructType, expect: Mapping[str, str] | None, *, has_key: bool) -> Column:
    from pyspark.sql import functions as F

    reason = F.when(F.col(f"{RECORD}.value").isNull(), "the record has no value")
    if _registered(schema) is not None:
        reason = reason.when(F.col(_UNFIT).isNotNull(), F.col(_UNFIT))
        return _with_rules(_of_key(reason) if has_key else reason, schema, expect)
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
    is_blank = F.trim(F.col(f"{RECORD}.value").cast("string")) == ""
    unfit = F.when(is_blank, "the value is empty").otherwise(f"the value is no JSON of the columns {columns}")
    reason = reason.when(F.col(_UNFIT), unfit)
    return _with_rules(_of_key(reason) if has_key else reason, schema, expect)


def _of_key(reason: Column) -> Column:
    from pyspark.sql import functions as F

    its = F.col(f"{_PARSED_KEY}.reason")
    return reason.when(its.isNotNull(), F.concat(F.lit("the key is bad: "), its))


def _with_rules(reason: Column, schema: StructType, expect: Mapping[str, str] | None) -> Column:
    from pyspark.sql import functions as F

    for field in schema.fields:
        if not field.nullable:
            reason = reason.when(F.col(f"`{field.name}`").isNull(), f"the column '{field.name}' is missing")
    for sentence, condition in (expect or {}).items():
        # Null is no yes: a rule about a column that is missing is broken.
        reason = reason.when(~F.coalesce(F.expr(condition), F.lit(False)), sentence)
    return reason
