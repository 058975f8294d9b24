"""Lines of a file to a topic and back, as Kafka Connect's FileStream connectors.

The source follows one file that grows; its offset is the position in bytes. A last line without an end is not read yet.
The sink appends to a file on the machine where its tasks run, without a way to tell what was appended already: it is at
least once. The connectors for files (`files/`) are what to use for data that matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from ottla.common.ids import TopicPartition
from ottla.connect.api import (
    Column,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConnectorFailure,
    Importance,
    Offset,
    Outage,
    Partition,
    Read,
    Records,
    Schema,
    SchemaType,
    Sink,
    SinkWriter,
    Source,
    check_numbers,
)
from ottla.connect.connectors.lines import texts_of

_PIECE_BYTES = 1024 * 1024
_FILE = ConfigKey("file", ConfigType.STRING, "The path of the file.", default=None, importance=Importance.HIGH)
_LINE = Schema(SchemaType.STRING)
_NO_KEY = Schema(SchemaType.STRING, optional=True)


class FileStreamSource(Source):
    aliases: ClassVar[Sequence[str]] = ("org.apache.kafka.connect.file.FileStreamSourceConnector",)
    config_def: ClassVar[ConfigDef] = ConfigDef(
        (
            _FILE,
            ConfigKey("topic", ConfigType.STRING, "Where lines go.", importance=Importance.HIGH),
            ConfigKey(
                "batch.size",
                ConfigType.INT,
                "Lines that are read at a time.",
                default=2000,
                importance=Importance.LOW,
                check=lambda count: None if count > 0 else "Value must be at least 1",
            ),
        )
    )

    def partitions(self, most: int) -> Sequence[Partition]:
        path = self.settings["file"]
        if not path:
            raise ConnectorFailure("file is not set: a worker has no standard input to read.")
        return [{"filename": path}]

    def has_more(self, partition: Partition, offset: Offset | None) -> bool:
        """Where the driver sees the file; the tasks of a Spark elsewhere may see another one."""
        try:
            return os.stat(partition["filename"]).st_size != int((offset or {}).get("position", 0))
        except OSError:
            return True

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        position = int((offset or {}).get("position", 0))
        try:
            with open(partition["filename"], "rb") as file:
                if position > os.fstat(file.fileno()).st_size:
                    raise ConnectorFailure(
                        f"{partition['filename']} is shorter than the {position} bytes that were read: it was "
                        "replaced; stop the connector and reset its offsets to read it from the start."
                    )
                file.seek(position)
                rest = b""
                while data := file.read(_PIECE_BYTES):
                    end = data.rfind(b"\n") + 1
                    if end == 0:
                        rest += data  # a long line, or the last one, whose end is not written yet
                        continue
                    whole, rest = rest + data[:end], data[end:]
                    position += len(whole)
                    yield Read(self._records(whole), {"position": position})
        except FileNotFoundError:
            return  # it may come
        except OSError as error:
            raise Outage(f"{partition['filename']} cannot be read: {error.strerror}.") from None

    def check_offset(self, partition: Partition, offset: Offset) -> str | None:
        if not isinstance(partition.get("filename"), str):
            return "the partition must have the key 'filename', with a path"
        if "position" not in offset:
            return "the offset must have the key 'position'"
        return check_numbers(offset, "position")

    def _records(self, block: bytes) -> Records:
        texts = texts_of(block)
        count = len(texts)
        return Records(
            topics=pa.repeat(self.settings["topic"], count),
            partitions=pa.nulls(count, pa.int32()),
            timestamps=pa.nulls(count, pa.int64()),
            keys=Column(_NO_KEY, pa.nulls(count, pa.string())),
            values=Column(_LINE, texts),
        )


class FileStreamSink(Sink):
    aliases: ClassVar[Sequence[str]] = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)
    config_def: ClassVar[ConfigDef] = ConfigDef((_FILE,))

    def open(self, partition: TopicPartition, position: int) -> SinkWriter:
        path = self.settings["file"]
        if not path:
            raise ConnectorFailure("file is not set: a worker's tasks have no standard output to write to.")
        return _Appender(path)


class _Appender(SinkWriter):
    def __init__(self, path: str) -> None:
        try:
            self._file = open(path, "ab")  # noqa: SIM115
        except OSError as error:
            raise Outage(f"{path} cannot be written: {error.strerror}.") from None

    def write(self, records: Records) -> None:
        try:
            self._file.write(_lines(records.values.data))
            self._file.flush()
        except OSError as error:
            raise Outage(f"{self._file.name} cannot be written: {error.strerror}.") from None

    def close(self) -> None:
        self._file.close()


def _lines(values: Any) -> bytes:
    """Of texts Arrow makes them, in less than a tenth of the time."""
    if isinstance(values, pa.StringArray):
        ended = pc.binary_join_element_wise(pc.fill_null(values, "null"), "\n", "")
        # The second buffer says where each begins, the third has all of them, one behind the other.
        where, data = ended.buffers()[1:]
        begins = pa.Array.from_buffers(pa.int32(), len(ended) + 1, [None, where], offset=ended.offset)
        return b"" if data is None else data[begins[0].as_py() : begins[len(ended)].as_py()].to_pybytes()
    found: list[Any] = values if isinstance(values, list) else values.to_pylist()
    return "".join([f"{_text(value)}\n" for value in found]).encode()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "null" if value is None else value.decode(errors="replace") if isinstance(value, bytes) else str(value)
