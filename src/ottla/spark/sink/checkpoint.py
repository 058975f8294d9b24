"""What a query's checkpoint says: the query's id, the offsets that a batch reads up to, and files of our own in it.

Spark writes the offsets of a batch down before the batch runs and never changes them: a batch that runs again, runs
over the same records. That is half of exactly once; the other half is the marker.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlparse

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Offsets = dict[str, dict[str, int]]
_FILE_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"


class BatchEnd(NamedTuple):
    """Up to where a batch reads, by topic and partition."""

    offsets: Offsets
    # There are sources of other kinds too, of which nothing is known here.
    is_partial: bool


def is_local(location: str) -> bool:
    return urlparse(location).scheme in ("", "file")


def _local_path(location: str) -> Path:
    return Path(urlparse(location).path)


class Checkpoint:
    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self.location = location.rstrip("/")

    def query_id(self) -> str:
        text = self.read("metadata")
        try:
            return str(json.loads(text)["id"])
        except (ValueError, KeyError):
            raise OttlaError(f"the checkpoint {self.location} has no readable query id.") from None

    def end(self, batch_id: int) -> BatchEnd:
        """Of all sources that have topics; of those that share one, what both have read."""
        # A version line, a line of settings, then one line for each source.
        lines = self.read(f"offsets/{batch_id}").splitlines()[2:]
        found: Offsets = {}
        by_source = [_topics(line) for line in lines]
        for source in by_source:
            for topic, partitions in source.items():
                its = found.setdefault(topic, {})
                for partition, offset in partitions.items():
                    its[partition] = min(offset, its.get(partition, offset))
        return BatchEnd(found, is_partial=not all(by_source))

    def newest_batch(self) -> int | None:
        """The last one whose offsets Spark has written down."""
        return max(self.numbers("offsets"), default=None)

    def unfinished_batch(self) -> int | None:
        """The one that Spark is going to run again."""
        newest = self.newest_batch()
        return newest if newest is not None and newest not in self.numbers("commits") else None

    # --- files

    def numbers(self, folder: str) -> list[int]:
        """The files there that are called like a batch."""
        path = f"{self.location}/{folder}"
        try:
            names = os.listdir(_local_path(path)) if is_local(path) else self._names_by_hadoop(path)
        except FileNotFoundError:
            return []
        return [int(name) for name in names if name.isdigit()]

    def write(self, name: str, text: str) -> None:
        """A reader sees the old file, or the new one: never a part."""
        path = f"{self.location}/{name}"
        if not is_local(path):
            self._write_by_spark(path, text)
            return
        try:
            target = _local_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            new = target.with_name(f".{target.name}.new")
            new.write_text(text)
            new.replace(target)
        except OSError as error:
            raise OttlaError(f"the checkpoint file {path} cannot be written: {error.strerror}.") from None

    def remove(self, name: str) -> None:
        path = f"{self.location}/{name}"
        if is_local(path):
            _local_path(path).unlink(missing_ok=True)
        else:
            where, files = self._hadoop(path)
            files.delete(where, False)

    def read(self, name: str) -> str:
        path = f"{self.location}/{name}"
        try:
            if is_local(path):
                return _local_path(path).read_text()
            return self._read_by_hadoop(path)
        except OSError as error:
            raise OttlaError(f"the checkpoint file {path} cannot be read: {error.strerror}.") from None

    def _hadoop(self, path: str) -> tuple[Any, Any]:
        jvm: Any = self._spark.sparkContext._jvm
        where = jvm.org.apache.hadoop.fs.Path(path)
        return where, where.getFileSystem(self._spark.sparkContext._jsc.hadoopConfiguration())

    def _names_by_hadoop(self, path: str) -> list[str]:
        where, files = self._hadoop(path)
        return [one.getPath().getName() for one in files.listStatus(where)] if files.exists(where) else []

    def _read_by_hadoop(self, path: str) -> str:
        where, files = self._hadoop(path)
        stream = files.open(where)
        try:
            jvm: Any = self._spark.sparkContext._jvm
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _write_by_spark(self, path: str, text: str) -> None:
        """As Spark writes its own logs: it knows how a file appears at once on each kind of file system."""
        where, files = self._hadoop(path)
        files.mkdirs(where.getParent())
        manager = self._spark.sparkContext._jvm.java.lang.Class.forName(_FILE_MANAGERS + "$")  # type: ignore[union-attr]
        managers = manager.getField("MODULE$").get(None)
        stream = managers.create(
            where.getParent(), self._spark._jsparkSession.sessionState().newHadoopConf()
        ).createAtomic(where, True)
        stream.write(bytearray(text.encode()))
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
