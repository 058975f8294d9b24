"""What a pipeline reads: topics as streams and as tables, decoded, from the cluster that the runner was pointed at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.spark.pipeline.decoding import dead_letters, good_rows, judged, parse_schema
from ottla.spark.pipeline.progress import ROWS_IN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


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
        self.tables: list[str] = []

    def stream(
        self,
        topic: str,
        schema: str | StructType | None = None,
        *,
        expect: Mapping[str, str] | None = None,
        **options: Any,
    ) -> DataFrame:
        """A topic as it grows, from its beginning. Several topics are written with commas between them.

        With a `schema`, such as "customer string not null, euro double", values are decoded from JSON: the columns are
        those of the schema, and `record`, a struct of all that the source knows (key, value, topic, partition, offset,
        timestamp, headers). Records that do not fit go to the dead-letter topic, and so do those for which a condition
        of `expect` does not hold: {"negative amount": "euro >= 0"}. Without a schema the columns are the source's own.
        `options` are those of the source, as maxOffsetsPerTrigger=100_000.
        """
        from pyspark.sql import functions as F

        raw = self._source(self.spark.readStream, topic, {"startingOffsets": "earliest", **options})
        self._stream_count += 1
        sizes = F.coalesce(F.octet_length("key"), F.lit(0)) + F.coalesce(F.octet_length("value"), F.lit(0))
        seen = F.count(F.lit(1)).alias("rows"), F.sum(sizes).alias("bytes")
        raw = raw.observe(f"{ROWS_IN}{self._stream_count}", *seen)
        if schema is None:
            return raw
        rows = judged(raw, parse_schema(schema), expect)
        self.rejected.append(dead_letters(rows, self._dead_letter_topic, self._pipeline))
        return good_rows(rows)

    def table(self, topic: str, schema: str | StructType, **options: Any) -> DataFrame:
        """The last value of each key of a topic, to join streams with. It is read anew for every micro-batch.

        Keys without a value are deleted ones. A value that does not fit is as if it was not there.
        """
        from pyspark.sql import functions as F

        self.tables.append(topic)
        raw = self._source(self.spark.read, topic, options)
        # A key stays in one partition, where a higher offset is a later value.
        newest = F.max_by(F.struct(*raw.columns), "offset").alias("newest")
        rows = raw.where("key is not null").groupBy("key").agg(newest).select("newest.*")
        return good_rows(judged(rows, parse_schema(schema), None)).drop("record")

    def _source(self, reader: Any, topic: str, options: Mapping[str, Any]) -> DataFrame:
        given = (
            {"subscribe": topic, "includeHeaders": "true"} | self._client | {k: _text(v) for k, v in options.items()}
        )
        frame: DataFrame = reader.format("ottla").options(**given).load()
        return frame


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
