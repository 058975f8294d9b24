"""What a pipeline reads: topics as streams and as tables, decoded, from the cluster that the runner was pointed at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.spark.observed import ROWS_IN
from ottla.spark.pipeline.decoding import KEY, dead_letters, good_rows, judged, of_keys, parse_schema
from ottla.spark.pipeline.tables.collection import Tables
from ottla.spark.pipeline.tables.table import refuse_options
from ottla.spark.source.gate import TOKEN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ottla.schemas.registry import SchemaRegistry


class Topics:
    def __init__(self, spark: SparkSession, client: Mapping[str, str], pipeline: str, dead_letter_topic: str) -> None:
        """`client`: options `kafka.*` for every source."""
        self.spark = spark
        self._client = dict(client)
        self._pipeline = pipeline
        self._dead_letter_topic = dead_letter_topic
        self._stream_count = 0
        # Bad records of every decoded stream; the runner writes them together with what the pipeline returns.
        self.rejected: list[DataFrame] = []
        self.tables = Tables(spark, pipeline, dead_letter_topic)

    def stream(
        self,
        topic: str,
        schema: str | StructType | SchemaRegistry | None = None,
        *,
        expect: Mapping[str, str] | None = None,
        key_schema: SchemaRegistry | None = None,
        **options: Any,
    ) -> DataFrame:
        """A topic as it grows, from its beginning. Several topics are written with commas between them.

        With a `schema`, such as "customer string not null, euro double", values are decoded from JSON: the columns are
        those of the schema, and `record`, a struct of all that the source knows (key, value, topic, partition, offset,
        timestamp, headers). Records that do not fit go to the dead-letter topic, and so do those for which a condition
        of `expect` does not hold: {"negative amount": "euro >= 0"}. Without a schema the columns are the source's own.
        With `schema=SchemaRegistry(URL)` values are Avro, JSON or Protobuf of a registry, and the columns are those of
        the latest version of the subject TOPIC-value; `registry.of(SUBJECT, version)` names another.
        With `key_schema=SchemaRegistry(URL)` keys are decoded, too, by the subject TOPIC-key, into a column `key`: a
        struct, or the value itself if the schema has no fields; null for a record without a key.
        `options` are those of the source, as maxOffsetsPerTrigger=100_000.
        """
        from pyspark.sql import functions as F

        given = {"subscribe": topic, "includeHeaders": "true", "startingOffsets": "earliest"}
        reader = self.spark.readStream.format("ottla").options(**given, **self._client).option(TOKEN, self.tables.token)
        raw = reader.options(**_texts(options)).load()
        self._stream_count += 1
        sizes = F.coalesce(F.octet_length("key"), F.lit(0)) + F.coalesce(F.octet_length("value"), F.lit(0))
        seen = F.count(F.lit(1)).alias("rows"), F.sum(sizes).alias("bytes")
        raw = raw.observe(f"{ROWS_IN}{self._stream_count}", *seen)
        if schema is None:
            if key_schema is not None:
                raise OttlaError("keys are decoded along with values: say `schema`, too, or leave `key_schema` out.")
            return raw
        rows = judged(
            raw, parse_schema(schema, topic), expect, None if key_schema is None else of_keys(key_schema, topic)
        )
        self.rejected.append(dead_letters(rows, self._dead_letter_topic, self._pipeline))
        return good_rows(rows)

    def table(
        self,
        topic: str,
        schema: str | StructType | SchemaRegistry,
        *,
        by: str | Sequence[str] = (),
        key_schema: SchemaRegistry | None = None,
        **options: Any,
    ) -> DataFrame:
        """The last value of each key of a topic, to join streams with. It follows the topic: a batch sees all that was
        there when it began, and sees the same if it runs again.

        A record without a value deletes its key. One whose value does not fit, or that has no key, goes to the
        dead-letter topic, and the key keeps the value that it had.

        `by`: the columns that it is joined on. Joins on them look up the rows that they need, however large the table
        is; any other query walks over all of it.

        `key_schema`: keys are decoded by a schema of that registry, too, into a column `key`, as those of a stream.
        Such a table is walked over by every query.
        """
        refuse_options(options)
        columns, divided_by = parse_schema(schema, topic), (by,) if isinstance(by, str) else tuple(by)
        key = None if key_schema is None else of_keys(key_schema, topic)
        names = columns.names if key is None else [*columns.names, KEY]
        for name in divided_by:
            if name not in names:
                raise OttlaError(f"a table cannot be divided by '{name}': it has {', '.join(names)}.")
        source = {"subscribe": topic, **self._client, **_texts(options)}
        return self.tables.add(topic, columns, source, divided_by, key)


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
