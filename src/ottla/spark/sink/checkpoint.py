"""What a query's checkpoint says: the query's id, the offsets that a batch reads up to, and files of our own in it.

Spark writes the offsets of a batch down before the batch runs and never changes them: a batch that runs again, runs
over the same records. That is half of exactly once; the other half is the marker.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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


# Hadoop takes what follows the scheme as it is: nothing in it is escaped.
_ON_THIS_MACHINE = re.compile(r"file:(?://[^/]*)?(/.*)", re.DOTALL)


def local_path(location: str) -> Path | None:
    """Of a location that says itself that it is on this machine; one without a scheme is where `fs.defaultFS` says."""
    found = _ON_THIS_MACHINE.fullmatch(location)
    return Path(found[1]) if found else None


class Checkpoint:
    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self.location = location.rstrip("/")

    @cached_property
    def qualified(self) -> str:
        """The location with its file system."""
        where, files = self._hadoop()
        return str(files.makeQualified(where).toString())

    @cached_property
    def local(self) -> Path | None:
        """Where it is on this machine, if it is."""
        return local_path(self.qualified)

    def remove_all(self) -> None:
        """Raises OttlaError when some of it is still there."""
        if self.local is not None:
            remove_folder(self.local)
            return
        where, files = self._hadoop()
        if not files.delete(where, True) and files.exists(where):
            raise OttlaError(f"the checkpoint {self.location} cannot be removed.")

    def query_id(self) -> str:
        found = _query_in(self.read("metadata"))
        if found is None:
            raise OttlaError(f"the checkpoint {self.location} has no readable query id.")
        return found

    def last_query(self) -> str | None:
        """The id of the query that it belongs to; None for a checkpoint that no query has begun."""
        if self.local is not None:
            return query_of(self.local)
        where, files = self._hadoop("metadata")
        return _query_in(self.read("metadata")) if files.exists(where) else None

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
        try:
            names = os.listdir(self.local / folder) if self.local is not None else self._names_by_hadoop(folder)
        except FileNotFoundError:
            return []
        return [int(name) for name in names if name.isdigit()]

    def write(self, name: str, text: str) -> None:
        """A reader sees the old file, or the new one: never a part."""
        if self.local is None:
            self._write_by_spark(name, text)
            return
        target = self.local / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            new = target.with_name(f".{target.name}.new")
            new.write_text(text)
            new.replace(target)
        except OSError as error:
            raise OttlaError(f"the checkpoint file {target} cannot be written: {error.strerror}.") from None

    def remove(self, name: str) -> None:
        if self.local is not None:
            (self.local / name).unlink(missing_ok=True)
        else:
            where, files = self._hadoop(name)
            files.delete(where, False)

    def read(self, name: str) -> str:
        if self.local is None:
            return self._read_by_hadoop(name)
        try:
            return (self.local / name).read_text()
        except OSError as error:
            raise OttlaError(f"the checkpoint file {self.local / name} cannot be read: {error.strerror}.") from None

    def _names_by_hadoop(self, name: str) -> list[str]:
        where, files = self._hadoop(name)
        return [status.getPath().getName() for status in files.listStatus(where)] if files.exists(where) else []

    def _read_by_hadoop(self, name: str) -> str:
        where, files = self._hadoop(name)
        stream = files.open(where)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _write_by_spark(self, name: str, text: str) -> None:
        """As Spark writes its own logs: it knows how a file appears at once on each kind of file system."""
        where, files = self._hadoop(name)
        files.mkdirs(where.getParent())
        self._create_by_spark(where, text)
        if self._read_by_hadoop(name) != text:
            # A manager that does not write over what is there says nothing of it.
            files.delete(where, False)
            self._create_by_spark(where, text)

    def _create_by_spark(self, where: Any, text: str) -> None:
        managers = self._jvm.java.lang.Class.forName(_FILE_MANAGERS + "$").getField("MODULE$").get(None)
        stream = managers.create(where.getParent(), self._settings).createAtomic(where, True)
        stream.write(bytearray(text.encode()))
        stream.close()

    @property
    def _jvm(self) -> Any:
        return self._spark.sparkContext._jvm

    @property
    def _settings(self) -> Any:
        """Of Hadoop, as the query will find them: those of the session count too."""
        return self._spark._jsparkSession.sessionState().newHadoopConf()

    def _hadoop(self, name: str = "") -> tuple[Any, Any]:
        """A file of the checkpoint, or all of it, and the file system that has it."""
        where = self._jvm.org.apache.hadoop.fs.Path(f"{self.location}/{name}" if name else self.location)
        return where, where.getFileSystem(self._settings)


def query_of(folder: Path) -> str | None:
    """The same of a checkpoint on this machine, for which nobody needs Spark."""
    try:
        return _query_in((folder / "metadata").read_text())
    except OSError:
        return None


def _query_in(metadata: str) -> str | None:
    try:
        return str(json.loads(metadata)["id"])
    except (ValueError, KeyError, TypeError):
        return None


def remove_folder(path: Path) -> None:
    """Raises OttlaError when some of it is still there."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OttlaError(f"the folder {error.filename or path} cannot be removed: {error.strerror}.") from None


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
