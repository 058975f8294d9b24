"""Values of records as columns, and the records whose values do not fit, with the reason.

A record is bad when it has no value, when the value is no JSON of the wanted types, when a column that is `not null` is
missing, or when it breaks a rule of the pipeline's own. It goes to the dead-letter topic as it came, key, value and
headers, with headers more that say why and from where.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

HEADERS = "array<struct<key:string,value:binary>>"
# Everything that the source said about a record, under one name that no decoded column is likely to have.
RECORD = "record"
_UNFIT = "_unfit"
_DECODED = "_decoded"
_REASON = "_reason"
_RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


def parse_schema(schema: str | StructType) -> StructType:
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import StructType

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


def judged(raw: DataFrame, schema: StructType, expect: Mapping[str, str] | None) -> DataFrame:
    """`raw` as the column `record`, the decoded columns, and why the record is bad, which is null for good ones."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructType

    wanted = StructType([_nullable(one) for one in schema.fields]).add(_UNFIT, StringType())
    record = F.struct(*(F.col(name) for name in _RECORD_COLUMNS))
    # The option also keeps Spark from leaving columns out that the query does not use: all of them are checked.
    decoded = F.from_json(F.col("value").cast("string"), wanted, {"columnNameOfCorruptRecord": _UNFIT})
    frame = raw.select(record.alias(RECORD), decoded.alias(_DECODED))
    return frame.select(RECORD, f"{_DECODED}.*").withColumn(_REASON, _reason(schema, expect))


def good_rows(judged_rows: DataFrame) -> DataFrame:
    return judged_rows.where(f"{_REASON} is null").drop(_REASON, _UNFIT)


def dead_letters(judged_rows: DataFrame, topic: str, pipeline: str) -> DataFrame:
    """Bad records as they are written; `ottla consume TOPIC -f '%h %s\\n'` shows them with their reasons."""
    from pyspark.sql import functions as F

    def header(name: str, text: Column) -> Column:
        return F.struct(F.lit(name).alias("key"), text.cast("string").cast("binary").alias("value"))

    record = F.col(RECORD)
    about = F.array(
        header("ottla.reason", F.col(_REASON)),
        header("ottla.pipeline", F.lit(pipeline)),
        header("ottla.source.topic", record["topic"]),
        header("ottla.source.partition", record["partition"]),
        header("ottla.source.offset", record["offset"]),
        header("ottla.source.timestamp", F.unix_millis(record["timestamp"])),
    ).cast(HEADERS)
    own = F.coalesce(record["headers"], F.array().cast(HEADERS))
    return judged_rows.where(f"{_REASON} is not null").select(
        F.lit(topic).alias("topic"),
        record["key"].alias("key"),
        record["value"].alias("value"),
        F.concat(own, about).alias("headers"),
    )


def _nullable(field: StructField) -> StructField:
    from pyspark.sql.types import StructField

    if field.name.lower() in (RECORD, _UNFIT, _REASON, _DECODED):
        raise OttlaError(f"a column cannot be called '{field.name}' here: the pipeline needs that name itself.")
    return StructField(field.name, field.dataType, True)


def _reason(schema: StructType, expect: Mapping[str, str] | None) -> Column:
    from pyspark.sql import functions as F

    columns = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in schema.fields)
    reason = F.when(F.col(f"{RECORD}.value").isNull(), "the record has no value")
    reason = reason.when(F.col(_UNFIT).isNotNull(), f"the value is no JSON of the columns {columns}")
    # Blank text is no JSON, and Spark does not call it unfit.
    reason = reason.when(F.trim(F.col(f"{RECORD}.value").cast("string")) == "", "the value is empty")
    for one in schema.fields:
        if not one.nullable:
            reason = reason.when(F.col(f"`{one.name}`").isNull(), f"the column '{one.name}' is missing")
    for sentence, condition in (expect or {}).items():
        # Null is no yes: a rule about a column that is missing is broken.
        reason = reason.when(~F.coalesce(F.expr(condition), F.lit(False)), sentence)
    return reason
