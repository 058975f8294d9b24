"""The load generator, in C and in Python: it sends what it counts, and a broker's error voids the measurement."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import frames, loadgen
from bench.wire import Connection, frame
from ottla.protocol.messages import ApiVersionsRequest
from ottla.testing import Broker


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.partition(":")
        yield host, int(port)


@pytest.fixture(params=["C", "Python"], autouse=True)
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "Python":
        monkeypatch.setenv("OTTLA_BENCH_CC", "none")
    elif shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    loadgen.command.cache_clear()
    yield request.param
    loadgen.command.cache_clear()


def make_topic(address: tuple[str, int], name: str, partitions: int = 1) -> bytes:
    with Connection(*address) as connection:
        return connection.create_topic(name, partitions)


def fetched(address: tuple[str, int], topic_id: bytes, end_offset: int, folder: Path) -> loadgen.Load:
    request, offset_at = frames.fetch(topic_id, 0)
    path = frames.write(folder / "fetch", [request])
    return loadgen.run("fetch", *address, fetch_frames=path, offset_at=offset_at, end_offset=end_offset)


def test_what_is_produced_in_a_closed_loop_can_be_fetched(
    address: tuple[str, int], language: str, tmp_path: Path
) -> None:
    topic_id = make_topic(address, f"closed-{language}")
    path = frames.write(tmp_path / "produce", [frames.produce(topic_id, 0, frames.batch(3, 50))])
    load = loadgen.run(
        "produce",
        *address,
        frames=path,
        connections=4,
        inflight=2,
        seconds=60,
        requests=100,
        error_at=frames.PRODUCE_ERROR_AT,
    )
    assert (load.counted, load.total_requests) == (100, 100)
    assert load.total_bytes == 100 * path.stat().st_size
    assert 0 < load.p50_ms <= load.p99_ms <= load.max_ms
    assert fetched(address, topic_id, 300, tmp_path).records == 300


def test_an_open_loop_keeps_its_rate(address: tuple[str, int], language: str, tmp_path: Path) -> None:
    topic_id = make_topic(address, f"open-{language}")
    path = frames.write(tmp_path / "produce", [frames.produce(topic_id, 0, frames.batch(1, 50))])
    load = loadgen.run(
        "produce",
        *address,
        frames=path,
        connections=2,
        inflight=5,
        rate=200,
        seconds=0.5,
        error_at=frames.PRODUCE_ERROR_AT,
    )
    assert 90 <= load.total_requests <= 102


def test_every_record_is_timed_from_end_to_end(address: tuple[str, int], language: str, tmp_path: Path) -> None:
    topic_id = make_topic(address, f"e2e-{language}")
    sizes = (frames.produce(topic_id, 0, frames.batch(count, 50)) for count in range(1, 9))
    request, offset_at = frames.fetch(topic_id, 0)
    load = loadgen.run(
        "e2e",
        *address,
        frames=frames.write(tmp_path / "produce", sizes),
        fetch_frames=frames.write(tmp_path / "fetch", [request]),
        offset_at=offset_at,
        inflight=5,
        rate=400,
        seconds=0.5,
        warmup=0.1,
        error_at=frames.PRODUCE_ERROR_AT,
    )
    # At most what the rate allows; how much less depends on the machine.
    assert 0 < load.counted <= 201
    assert load.records >= load.counted


def test_an_error_of_the_broker_ends_the_measurement(address: tuple[str, int], language: str, tmp_path: Path) -> None:
    unknown = frames.write(tmp_path / "produce", [frames.produce(b"\x07" * 16, 0, frames.batch(1, 50))])
    with pytest.raises(loadgen.LoadGenFailed, match="error 100"):
        loadgen.run("produce", *address, frames=unknown, seconds=5, error_at=frames.PRODUCE_ERROR_AT)


def test_idle_connections_stay_open_for_as_long_as_the_block(address: tuple[str, int], tmp_path: Path) -> None:
    hello = frame(18, 3, ApiVersionsRequest(client_software_name="bench", client_software_version="1"))
    with loadgen.held_open(*address, 20, frames.write(tmp_path / "hello", [hello])), Connection(*address) as connection:
        assert connection.versions()[0] >= frames.PRODUCE_VERSION
