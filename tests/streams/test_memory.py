"""State that does not fit into memory is refused with a sentence, and never at the cost of records."""

from __future__ import annotations

import resource
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.settings import parse_named
from ottla.streams import Batch, ErrorHandling, OnError, StreamsBuilder, TopologyTestDriver, serdes
from ottla.streams.engine import memory, task_state
from ottla.streams.engine.memory import Room, StateTooLarge
from ottla.streams.engine.running import SCHEMA, TopologyRun
from ottla.streams.engine.task_state import TaskState, check_room
from ottla.streams.state.bytes_store import MemoryBytes

GIB = 1024**3
WHAT = "the state of task 0_1 of application 'orders'"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Files in which the system tells how much memory there is; gives a function that writes them, in GiB."""
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    monkeypatch.setattr(memory, "_PROCESS", tmp_path / "statm")

    def tell(left: float, *, container_left: float | None = None, cached: float = 0.0, is_small: bool = False) -> None:
        own = (memory.SMALL_BYTES if is_small else GIB) // resource.getpagesize()
        (tmp_path / "statm").write_text(f"{2 * own} {own} 7")
        kib = int(left * GIB / 1024)
        (tmp_path / "meminfo").write_text(f"MemTotal: {16 * GIB // 1024} kB\nMemAvailable: {kib} kB\nHugePages: 0\n")
        (tmp_path / "memory.max").write_text("max" if container_left is None else str(2 * GIB))
        (tmp_path / "memory.current").write_text(str(int((2 - (container_left or 0)) * GIB)))
        (tmp_path / "memory.stat").write_text(f"anon 7\ninactive_file {int(cached * GIB)}\n")

    tell(8)
    return tell


def test_of_a_limit_a_part_stays_free() -> None:
    assert Room("x", 16 * GIB, memory.SPARE_BYTES - 1).is_used_up
    assert not Room("x", 16 * GIB, memory.SPARE_BYTES).is_used_up
    assert not Room("x", GIB // 4, GIB // 16).is_used_up


def test_there_is_room_where_the_system_says_so_or_nothing(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [room.where for room in memory.rooms()] == ["the machine"]
    check_room(WHAT, TaskState({}))
    monkeypatch.setattr(memory, "_MACHINE", Path("/nowhere"))
    assert memory.rooms() == []


def test_a_worker_without_room_says_what_to_do(machine: Any) -> None:
    store = MemoryBytes()
    store.put(b"k", b"v")
    machine(0.1)
    with pytest.raises(StateTooLarge, match=r"0_1 of application 'orders' does not fit .*: it has 1 entries, and"):
        check_room(WHAT, TaskState({"counts": store}))
    machine(0.1, is_small=True)
    check_room(WHAT, TaskState({}))  # others have taken it
    machine(8, container_left=0.1, cached=1)
    check_room(WHAT, TaskState({}))
    machine(8, container_left=0.1)
    with pytest.raises(StateTooLarge, match=r"the container has 102 of 2,048 MiB left.*more partitions"):
        check_room(WHAT, TaskState({}))


def test_copies_for_other_tasks_make_room_first(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = TaskState({}), TaskState({})
    monkeypatch.setattr(task_state, "_kept", {(1, "a", "0_0"): own, (1, "a", "0_1"): other})
    gone = weakref.ref(other, lambda _: machine(8))
    del other
    machine(0.1)
    check_room(WHAT, own)
    assert gone() is None and list(task_state._kept.values()) == [own]


def test_a_batch_that_does_not_fit_says_what_to_do(machine: Any) -> None:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream("in").to("out")
    run = TopologyRun(builder.build(), "orders", parse_named("127.0.0.1:9", {}), {"in": 1}, ErrorHandling(), "one")
    machine(0.1)
    with pytest.raises(StateTooLarge, match=r"one batch of application 'orders' do not fit .*`maxBytesPerTrigger`"):
        list(run(iter([pa.RecordBatch.from_pylist([], schema=SCHEMA)]), Counter()))


def test_memory_that_runs_out_while_records_are_read_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task fetches and decodes them itself: a limit may be met there, between two looks at the room."""
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream("in").to("out")
    run = TopologyRun(builder.build(), "orders", parse_named("127.0.0.1:9", {}), {"in": 1}, ErrorHandling(), "one")
    kept = {(1, "a", "0_0"): TaskState({})}
    monkeypatch.setattr(task_state, "_kept", kept)
    with pytest.raises(StateTooLarge, match=r"one batch of application 'orders' do not fit .*`maxBytesPerTrigger`"):
        list(run(map(out_of_memory, [None]), Counter()))
    assert kept == {}


class NoMemory:
    """A serde for which memory runs out."""

    def serialize(self, topic: str, value: Any) -> bytes:
        raise MemoryError

    def deserialize(self, topic: str, data: bytes) -> Any:
        raise MemoryError


def out_of_memory(*arguments: Any) -> Any:
    raise MemoryError


def vectorised(batch: Batch) -> Any:
    raise MemoryError


@pytest.mark.parametrize("where", ["read", "function", "batch", "write"])
def test_a_record_that_memory_ran_out_for_is_never_left_out(where: str) -> None:
    """Handlers are about records: nothing is wrong with this one."""
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    stream = builder.stream("in", value=NoMemory() if where == "read" else None)
    if where == "function":
        stream = stream.map_values(out_of_memory)
    if where == "batch":
        stream = stream.map_batches(vectorised)
    stream.to("out", value=NoMemory() if where == "write" else serdes.string)
    handling = ErrorHandling(OnError.CONTINUE, OnError.CONTINUE, production=OnError.CONTINUE)
    driver = TopologyTestDriver(builder.build(), handling=handling)
    with pytest.raises(MemoryError):
        driver.pipe_bytes("in", b"k", b"v", 0)
