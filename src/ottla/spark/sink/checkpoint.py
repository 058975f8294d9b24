"""What a query's checkpoint says: the query's id, and the offsets that a batch reads up to.

Spark writes the offsets of a batch down before the batch runs and never changes them: a batch that runs again, runs
over the same records. That is half of exactly once; the other half is the marker.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlparse

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Offsets = dict[str, dict[str, int]]


class BatchEnd(NamedTuple):
    """Up to where a batch reads, by topic and partition."""

    offsets: Offsets
    # There are sources of other kinds too, of which nothing is known here.
    is_partial: bool


def is_local(location: str) -> bool:
    return urlparse(location).scheme in ("", "file")


class Checkpoint:
    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self.location = location.rstrip("/")

    def query_id(self) -> str:
        text = self._read("metadata")
        try:
            return str(json.loads(text)["id"])
        except (ValueError, KeyError):
            raise OttlaError(f"the checkpoint {self.location} has no readable query id.") from None

    def end(self, batch_id: int) -> BatchEnd:
        """Of all sources that have topics; of those that share one, what both have read."""
        # A version line, a line of settings, then one line for each source.
        lines = self._read(f"offsets/{batch_id}").splitlines()[2:]
        found: Offsets = {}
        by_source = [_topics(line) for line in lines]
        for source in by_source:
            for topic, partitions in source.items():
                its = found.setdefault(topic, {})
                for partition, offset in partitions.items():
                    its[partition] = min(offset, its.get(partition, offset))
        return BatchEnd(found, is_partial=not all(by_source))

    def _read(self, name: str) -> str:
        path = f"{self.location}/{name}"
        try:
            if is_local(path):
                return Path(urlparse(path).path).read_text()
            return self._read_by_hadoop(path)
        except OSError as error:
            raise OttlaError(f"the checkpoint file {path} cannot be read: {error.strerror}.") from None

    def _read_by_hadoop(self, path: str) -> str:
        jvm: Any = self._spark.sparkContext._jvm
        where = jvm.org.apache.hadoop.fs.Path(path)
        stream = where.getFileSystem(self._spark.sparkContext._jsc.hadoopConfiguration()).open(where)
        try:
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()


def _topics(line: str) -> Offsets:
    """The offsets of one source, if they are of the form {topic: {partition: offset}}; else none."""
    try:
        parsed = json.loads(line)
    except ValueError:
        return {}
    if not isinstance(parsed, dict):
        return {}
    return {
        topic: {partition: offset for partition, offset in its.items() if isinstance(offset, int)}
        for topic, its in parsed.items()
        if isinstance(its, dict)
    }
