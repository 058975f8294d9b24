"""`format("ottla")`: what Spark asks first. Readers are made in other processes than the one that reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.common.errors import OttlaError
from ottla.kernel.loading import slow_notice
from ottla.spark.requirements import refuse_connect
from ottla.spark.source.batch import BatchReader
from ottla.spark.source.gate import TOKEN, Knocker
from ottla.spark.source.options import gives_ranges, includes_headers, parse_options
from ottla.spark.source.ranges import range_schema
from ottla.spark.source.stream import StreamReader
from ottla.spark.spool.sending import SpoolAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "ottla"
# Where nobody could say how many cores there are.
CORES_DEFAULT = 8

COLUMNS = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)
HEADERS = StructField(
    "headers", ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
)


class OttlaDataSource(DataSource):
    cores = CORES_DEFAULT
    # Where what is written waits for its transaction, or why there is no such place.
    spool: SpoolAddress | str = "make the format known with `ottla.spark.register(spark)`: its process writes."

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        if gives_ranges(self.options):
            return range_schema()
        return StructType([*COLUMNS, HEADERS] if includes_headers(self.options) else [*COLUMNS])

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(parse_options(self.options, is_streaming=False), schema, self.cores)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from ottla.spark.sink.batch import BatchWriter

        if overwrite:
            raise OttlaError('topics can only be appended to: write with mode("append").')
        if isinstance(self.spool, str):
            raise OttlaError(self.spool)
        return BatchWriter(self.options, schema, self.spool)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        raise OttlaError("a stream is written with `ottla.spark.write_stream(frame, ...)`, which writes exactly once.")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = parse_options(self.options, is_streaming=True)
        return StreamReader(options, schema, self.cores, Knocker(self.options.get(TOKEN)))


def register(spark: SparkSession) -> None:
    """Make `format("ottla")` known to this session, and in a thread of its own to that thread: Spark looks formats up
    in the session that is the thread's active one."""
    from ottla.spark.source.table import TableSource

    refuse_connect(spark)
    if (notice := slow_notice()) is not None:
        warnings.warn(notice, RuntimeWarning, stacklevel=2)
    with being_active(spark):
        for kind in (OttlaDataSource, TableSource):
            spark.dataSource.register(data_source_for(_cores_of(spark), _spool_of(spark), kind))


@contextmanager
def being_active(spark: SparkSession) -> Iterator[None]:
    """Spark looks whether a name is taken in the active session, also when it is asked to register it in another. Where
    there is none, this one stays active: nothing could be read or written there without."""
    sessions: Any = spark._jvm.SparkSession  # type: ignore[union-attr]
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())


def data_source_for(
    known_cores: int, known_spool: SpoolAddress | str, kind: type[OttlaDataSource]
) -> type[OttlaDataSource]:
    """Sources are planned in processes without a session, which cannot ask for the number of cores or where the spool
    is. A class made here travels to them by value, with these in it."""

    class RegisteredDataSource(kind):  # type: ignore[valid-type, misc]
        cores = known_cores
        spool = known_spool

    return RegisteredDataSource


def _cores_of(spark: SparkSession) -> int:
    return max(1, int(spark.sparkContext.defaultParallelism))


def _spool_of(spark: SparkSession) -> SpoolAddress | str:
    """Whoever only reads is not to be kept from it."""
    from ottla.spark.sink.driver_spool import driver_spool

    try:
        return driver_spool(spark).address
    except OttlaError as error:
        return str(error)
