"""`ottla start`: the ready line, a clean stop, and configuration mistakes as sentences."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ConfigSource, NewTopic, ResourceType

from tests.cli.command import Cli
from tests.support.brokers import OttlaProcess


@pytest.fixture
def cli() -> Cli:
    return Cli()


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_says_ready_serves_and_stops_cleanly(cli: Cli, tmp_path: Path, stop_signal: signal.Signals) -> None:
    config = tmp_path / "server.properties"
    config.write_text("num.partitions=3\nnode.id=7\n")
    # The tests themselves may run under nohup, which whoever they start would inherit.
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    broker = cli.start(
        *("start", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data", "--config", config),
        *("-X", "num.partitions=4"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGHUP, inherited)
    try:
        assert broker.stdout is not None
        ready = re.fullmatch(r"ready address=(127\.0\.0\.1:\d+) node\.id=7 version=\S+\n", broker.stdout.readline())
        assert ready is not None
        client = Cli(ready[1])
        client.ok("topic", "create", "t")
        assert client.ok("topic", "list", "--output", "json").data[0]["partitions"] == 4
    finally:
        broker.send_signal(stop_signal)
        out, err = broker.communicate(timeout=30)
    assert broker.returncode == 0
    assert out == ""
    assert "Traceback" not in err
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_under_nohup_a_hang_up_is_ignored(cli: Cli, tmp_path: Path) -> None:
    inherited = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        start = ("start", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data")
        broker = cli.start(*start, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    finally:
        signal.signal(signal.SIGHUP, inherited)
    try:
        assert broker.stdout is not None
        address = broker.stdout.readline().split()[1].removeprefix(b"address=").decode()
        broker.send_signal(signal.SIGHUP)
        assert Cli(address).ok("topic", "list").out
        assert broker.poll() is None
    finally:
        broker.terminate()
        broker.communicate(timeout=60)
    assert broker.returncode == 0


def test_the_log_tells_the_life_of_a_broker(tmp_path: Path) -> None:
    def messages(broker: OttlaProcess) -> list[str]:
        entries = [json.loads(line) for line in broker.log_tail(1000).splitlines()]
        return [entry["message"].replace(str(broker.data_dir), "DIR").split(" in ")[0] for entry in entries]

    with OttlaProcess(tmp_path / "broker", arguments=["--log-format", "json"]) as broker:
        Cli(broker.bootstrap).ok("topic", "create", "t")
        broker.restart()
        broker.restart(kill=True)
        broker.stop()
        first = ["listening", "started", "topic created", "stopping", "stopped"]
        again = ["DIR: loaded", "listening", "started"]
        assert messages(broker) == [*first, *again, *again, "stopping", "stopped"]
        loaded = [line for line in broker.log_tail(1000).splitlines() if "loaded in" in line]
        assert "after a clean stop" in loaded[0]
        assert "after a crash" in loaded[1]


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "[::]"])
def test_a_broker_on_every_interface_tells_clients_an_address_that_they_can_use(
    tmp_path: Path, everywhere: str
) -> None:
    if everywhere == "[::]" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with _started(tmp_path, "--listen", f"{everywhere}:0") as ready:
        port = ready["address"].rpartition(":")[2]
        assert ready["address"] == f"{everywhere}:{port}"
        admin = AdminClient({"bootstrap.servers": f"127.0.0.2:{port}"})
        (told,) = admin.list_topics(timeout=30).brokers.values()
        host = f"[{told.host}]" if ":" in told.host else told.host
        assert ready["advertised"] == f"{host}:{told.port}"
        assert host not in ("0.0.0.0", "[::]")
        assert told.port == int(port)
        # What was told leads back to the broker.
        admin.create_topics([NewTopic("t", 1)])["t"].result(30)
        entry = _described(admin)["advertised.listeners"]
        assert (entry.value, entry.source) == (f"PLAINTEXT://{ready['advertised']}", STATIC)


def test_what_is_advertised_can_be_said(tmp_path: Path) -> None:
    with _started(tmp_path, "--listen", "0.0.0.0:0", "--advertise", "localhost") as ready:
        port = ready["address"].rpartition(":")[2]
        assert ready["advertised"] == f"localhost:{port}"
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
        (told,) = admin.list_topics(timeout=30).brokers.values()
        assert (told.host, told.port) == ("localhost", int(port))


def test_an_address_given_by_the_flag_is_a_static_setting(tmp_path: Path) -> None:
    with _started(tmp_path, "--listen", "127.0.0.1:0") as ready:
        assert "advertised" not in ready
        entry = _described(AdminClient({"bootstrap.servers": ready["address"]}))["advertised.listeners"]
        assert (entry.value, entry.source) == (f"PLAINTEXT://{ready['address']}", STATIC)


STATIC = int(ConfigSource.STATIC_BROKER_CONFIG.value)


@contextmanager
def _started(tmp_path: Path, *arguments: str) -> Iterator[dict[str, str]]:
    """A broker with these arguments; gives what its ready line says."""
    start = ("start", *arguments, "--data-dir", tmp_path / "data", "-X", "offsets.topic.num.partitions=1")
    broker = Cli().start(*start, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert broker.stdout is not None
        word, *pairs = broker.stdout.readline().decode().split()
        assert word == "ready"
        yield dict(pair.split("=", 1) for pair in pairs)
    finally:
        broker.terminate()
        broker.communicate(timeout=60)


def _described(admin: AdminClient) -> dict[str, ConfigEntry]:
    (described,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    return dict(described.result(30))


def test_mistakes_are_one_sentence(cli: Cli, tmp_path: Path) -> None:
    start = ("start", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data")
    assert "num.partitions" in cli.fails(1, *start, "-X", "num.partitons=3")
    assert "num.partitions" in cli.fails(1, *start, "-X", "num.partitions=three")
    assert "name=value" in cli.fails(2, *start, "-X", "nonsense")
    assert "authorizer.class.name" in cli.fails(1, *start, "-X", "authorizer.class.name=any.Authorizer")
    assert "none.properties" in cli.fails(1, *start, "--config", tmp_path / "none.properties")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = cli.fails(1, "start", "--listen", f"127.0.0.1:{port}", "--data-dir", tmp_path / "data")
    assert f"port {port}" in sentence
    assert "taken" in sentence


def test_a_folder_in_use_is_refused(cli: Cli, tmp_path: Path) -> None:
    start = ("start", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data")
    first = cli.start(*start, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert first.stdout is not None
        assert first.stdout.readline().startswith(b"ready")
        assert str(tmp_path / "data") in cli.fails(1, *start)
    finally:
        first.terminate()
        first.communicate(timeout=30)


def test_properties_may_stand_before_the_verb(cli: Cli, tmp_path: Path) -> None:
    assert "num.partitions" in cli.fails(1, "-X", "num.partitions=x", "start", "--data-dir", tmp_path / "data")
