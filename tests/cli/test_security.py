"""`ottla security`, `user` and `acl`: from nothing to a secured broker with the lines that are printed, and on."""

from __future__ import annotations

import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from cryptography import x509

from ottla.common.certificates import Authority, certificates_in
from ottla.security.principal_rules import NoPrincipal, parse_rules
from tests.cli.command import OUTSIDE, Cli
from tests.support.kafka_jars import REPO_ROOT, class_path, quick_java, require_kafka_libs

Tool = Callable[..., str]


def free_block(size: int) -> int:
    """The first of so many free ports in a row, below those that the system gives away by itself."""
    for _ in range(1000):
        first = random.randrange(15_000, 30_000)
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + size):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no free ports")


def initialised(folder: Path) -> tuple[int, list[str]]:
    """The first port, and the lines that are printed."""
    port = free_block(3)
    made = Cli().ok("security", "init", "--dir", folder, "--host", "localhost", "--port", str(port))
    return port, made.lines


class Secured:
    """A broker that was started as `init` says, and commands as one of its clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, _ = initialised(folder)
        self._log = (folder.parent / "broker.log").open("wb")
        command = [sys.executable, "-m", "ottla", "start", "--config", str(folder / "broker-1/server.properties")]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log, env=Cli().variables())
        self.admin = self.cli("admin")
        self.admin.ok("cluster", "health", "--wait", "60")

    def cli(self, profile: str) -> Cli:
        return Cli(environment={"OTTLA_PROFILES": str(self.folder / "profiles.toml"), "OTTLA_PROFILE": profile})

    def log(self) -> str:
        return (self.folder.parent / "broker.log").read_text()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._log.close()

    def serial(self) -> int:
        """Of the certificate that the broker shows."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        with (
            socket.create_connection(("localhost", self.port), 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as link,
        ):
            certificate = link.getpeercert(binary_form=True)
        assert certificate is not None
        return x509.load_der_x509_certificate(certificate).serial_number


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    running = Secured(tmp_path_factory.mktemp("secured") / "made")
    yield running
    running.close()


def test_the_three_lines_start_a_broker_and_prove_that_it_works(tmp_path: Path) -> None:
    _, lines = initialised(tmp_path / "with a blank")
    assert len(lines) == 3
    binaries = tmp_path / "bin"
    binaries.mkdir()
    program = binaries / "ottla"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ottla "$@"\n')
    program.chmod(0o755)
    outside = {name: value for name, value in os.environ.items() if name not in OUTSIDE}
    environment = outside | {"PATH": f"{binaries}:{os.environ['PATH']}", "PYTHONPATH": str(REPO_ROOT / "src")}
    script = "\n".join([*lines, "status=$?", "kill %1", "wait", "exit $status"])
    shell = subprocess.Popen(
        ["bash", "-m", "-c", script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = shell.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, (out, err)
    assert b"it works" in out.splitlines()
    assert b"open to everybody" not in err


def test_secrets_are_for_their_owner_alone(secured: Secured) -> None:
    shown = {path.name for path in secured.folder.rglob("*") if path.is_file() and path.stat().st_mode & 0o077}
    assert {name for name in shown if not name.endswith((".log", ".index", ".timeindex"))} <= {"ca.pem"} | {
        path.name for path in (secured.folder / "broker-1/data").rglob("*")
    }
    password = tomllib.loads((secured.folder / "profiles.toml").read_text())["profiles"]["admin"]["sasl.password"]
    assert password not in (secured.folder / "broker-1/server.properties").read_text()
    assert password not in secured.log()


def test_a_client_with_a_certificate_may_do_what_it_is_allowed(secured: Secured) -> None:
    secured.admin.ok("topic", "create", "orders")
    Cli().ok("security", "add-client", "billing", "--dir", secured.folder)
    billing = secured.cli("billing")
    assert "may not" in billing.fails(1, "produce", "orders", "hello")
    added = secured.admin.ok(
        "acl", "add", "--allow", "billing", "--producer", "--consumer", "--topic", "orders", "--group", "billing"
    )
    assert added.lines[-1] == "added 5 ACLs"
    billing.ok("produce", "orders", "hello")
    assert billing.ok("consume", "orders", "-g", "billing", "-n", "1", "-f", "%s").out == "hello"
    assert "User:billing" in secured.admin.ok("acl", "list", "--topic", "orders").out
    assert "admin" in secured.cli("admin-certificate").ok("user", "list").out


def test_users_come_and_go(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first secret\n")
    secured.admin.ok("user", "create", "ada", "--password-file", file)
    secured.admin.ok("acl", "add", "--allow", "ada", "--operation", "describe", "--cluster")
    assert "already" in secured.admin.fails(1, "user", "create", "ada", "--password-file", file)

    def is_let_in(password: str) -> bool:
        outcome = secured.admin("user", "list", "-X", "sasl.username=ada", "-X", f"sasl.password={password}")
        assert "Traceback" not in outcome.err
        return outcome.status == 0

    assert is_let_in("first secret")
    assert not is_let_in("something else")
    secured.admin.ok("user", "passwd", "ada", "--password-file", "-", stdin="second\n")
    assert is_let_in("second")
    assert not is_let_in("first secret")
    made = secured.admin.ok("user", "passwd", "ada", "--generate", "--output", "json").data
    assert is_let_in(made["password"])
    assert secured.admin.ok("user", "delete", "ada", "-y").out == "deleted ada\n"
    assert not is_let_in(made["password"])
    assert "there is no user 'ada'" in secured.admin.fails(1, "user", "passwd", "ada", "--generate")
    assert "nobody to ask" in secured.admin.fails(1, "user", "create", "bob")
    for secret in ("first secret", "second", made["password"]):
        assert secret not in secured.log()


def test_acls_are_added_listed_and_removed(secured: Secured) -> None:
    admin = secured.admin
    admin.ok(
        "acl", "add", "--allow", "etl", "--operation", "read", "--topic", "raw-", "--prefixed", "--host", "10.1.2.3"
    )
    admin.ok("acl", "add", "--deny", "etl", "--operation", "all", "--topic", "raw-secret")
    found = admin.ok("acl", "list", "--topic", "raw-secret", "--matching", "--output", "json").data
    assert [(one["permission"], one["pattern"], one["host"]) for one in found] == [
        ("allow", "prefixed", "10.1.2.3"),
        ("deny", "literal", "*"),
    ]
    assert "remove 2 ACLs?" in admin("acl", "remove", "--allow", "etl", "--deny", "etl", stdin="n\n").err
    assert admin.ok("acl", "remove", "--allow", "etl", "--deny", "etl", "-y").lines[-1] == "removed 2 ACLs"
    assert admin.ok("acl", "list", "--allow", "etl").out == "there are no such ACLs\n"
    role = ("--allow", "svc", "--producer", "--topic", "t", "--transactional-id", "x", "--idempotent")
    assert admin.ok("acl", "add", *role).lines[-1] == "added 6 ACLs"
    admin.ok("acl", "add", "--allow", "svc", "--operation", "delete", "--topic", "t")
    assert admin.ok("acl", "remove", "-y", *role).lines[-1] == "removed 6 ACLs"
    assert len(admin.ok("acl", "list", "--allow", "svc", "--output", "json").data) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["acl", "add", "--allow", "a", "--operation", "reed", "--topic", "t"], 2, "did you mean read?"),
        (["acl", "add", "--allow", "a", "--operation", "cluster-action", "--topic", "t"], 2, "a topic knows no"),
        (["acl", "add", "--allow", "a", "--topic", "t"], 2, "say what: --operation"),
        (["acl", "add", "--operation", "read", "--topic", "t"], 2, "say for whom"),
        (["acl", "add", "--allow", "a", "--consumer", "--topic", "t"], 2, "--consumer needs a --group"),
        (["acl", "remove"], 2, "say which"),
        (["quota", "set", "--user", "a", "producer_rate=1"], 2, "did you mean producer_byte_rate?"),
        (["quota", "set", "--user", "a", "producer_byte_rate=fast"], 2, "takes a number above 0"),
        (["quota", "set", "producer_byte_rate=1"], 2, "say for whom"),
        (["quota", "set", "--user", "a", "--ip", "1.2.3.4", "producer_byte_rate=1"], 2, "--ip stands alone"),
        (["security", "init", "--dir", "/proc/nowhere", "--host", "localhost"], 1, "cannot use /proc/nowhere"),
        (["security", "init", "--dir", "DIR/x", "--host", "http://me:1"], 1, "is not the name or address of a host"),
        (["security", "renew", "--dir", "DIR"], 1, "make it with `ottla security init`"),
        (["security", "add-client", "broker", "--dir", "DIR"], 1, "choose another name"),
        (["security", "add-client", "a/b", "--dir", "DIR"], 1, "is not a name for a client"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(tmp_path: Path, arguments: list[str], status: int, said: str) -> None:
    assert said in Cli().fails(status, *(one.replace("DIR", str(tmp_path)) for one in arguments))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--host", "cafe:9092"], "'cafe:9092' is not the name or address of a host"),
        (["--host", "::::"], "'::::' is not the name or address of a host"),
        (["--host", "localhost", "--zookeeper", "zk:2181\nsuper.users=User:eve"], "--zookeeper is where ZooKeeper is"),
        (["--host", "localhost", "--zookeeper", ""], "--zookeeper is where ZooKeeper is"),
    ],
)
def test_init_makes_nothing_of_a_mistake(tmp_path: Path, given: list[str], said: str) -> None:
    told = Cli().fails(1, "security", "init", "--dir", tmp_path / "made", *given)
    assert said in told and len(told.splitlines()) == 1, told
    assert not list(tmp_path.glob("made/*")), "the next try would trust an authority that was left"


def test_no_certificate_outlives_its_authority(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    Cli().ok("security", "init", "--dir", folder, "--host", "localhost")
    authority = Authority.new("Ottla CA", 100).issued
    (folder / "ca.pem").write_bytes(authority.certificate_pem)
    (folder / "ca.key").write_bytes(authority.key_pem)
    before = (folder / "broker-1/broker.pem").read_text()
    assert "at most 99 --days" in Cli().fails(1, "security", "renew", "--dir", folder)
    assert "at most 99 --days" in Cli().fails(1, "security", "add-client", "ada", "--dir", folder)
    assert (folder / "broker-1/broker.pem").read_text() == before and not (folder / "clients/ada").exists()
    Cli().ok("security", "renew", "--dir", folder, "--days", "99")


def test_a_host_may_have_a_longer_name_than_a_certificate_has_room_for(tmp_path: Path) -> None:
    host = "broker-0." + "x" * 60 + ".example.com"
    Cli().ok("security", "init", "--dir", tmp_path / "made", "--host", host)
    made = x509.load_pem_x509_certificate((tmp_path / "made/broker-1/broker.pem").read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert host in names.get_values_for_type(x509.DNSName)
    assert made.subject.rfc4514_string() == "CN=broker-1,OU=brokers"


def test_nobody_is_a_broker_by_a_name_that_looks_so(tmp_path: Path) -> None:
    """Whoever signs others' wishes with the CA, by another tool, may not know what a comma means here."""
    Cli().ok("security", "init", "--dir", tmp_path / "made", "--host", "localhost")
    properties = (tmp_path / "made/broker-1/server.properties").read_text()
    (rules,) = [line.partition("=")[2] for line in properties.splitlines() if line.startswith("ssl.principal.mapping")]
    user = parse_rules(rules)
    assert user("CN=localhost,OU=brokers") == user("CN=2001:db8::1,OU=brokers") == "broker"
    assert user("CN=billing") == "billing"
    with pytest.raises(NoPrincipal):
        user("CN=eve\\,OU=brokers")


def test_a_cluster_without_an_authorizer_has_no_acls(cli: Cli) -> None:
    assert "has no authorizer" in cli.fails(1, "acl", "list")


def test_a_renewed_certificate_is_taken_up_without_a_restart(secured: Secured) -> None:
    before = secured.serial()
    producer = Producer(_settings(secured.folder, "admin"))
    producer.produce("renewals", b"before")
    assert producer.flush(30) == 0
    assert "there is no certificate of 'nobody'" in Cli().fails(
        1, "security", "renew", "nobody", "--dir", secured.folder
    )
    Cli().ok("security", "renew", "broker-1", "--dir", secured.folder)
    deadline = time.monotonic() + 30
    while secured.serial() == before:
        assert time.monotonic() < deadline, secured.log()
        time.sleep(0.2)
    producer.produce("renewals", b"after")
    assert producer.flush(30) == 0


def _settings(folder: Path, client: str) -> dict[str, str]:
    lines = (folder / "clients" / client / "librdkafka.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


@pytest.mark.slow
def test_the_authority_is_replaced_in_three_steps(secured: Secured) -> None:
    """After each of them all clients get in, old certificates and new ones."""
    ca, before = secured.folder / "ca.pem", secured.serial()
    Cli().ok("security", "renew", "--ca", "--dir", secured.folder)
    assert len(certificates_in(ca.read_text())) == 2
    secured.cli("admin-certificate").ok("topic", "list")
    Cli().ok("security", "renew", "--dir", secured.folder)
    deadline = time.monotonic() + 30
    while secured.serial() == before:
        assert time.monotonic() < deadline, secured.log()
        time.sleep(0.2)
    secured.cli("admin-certificate").ok("topic", "list")
    Cli().ok("security", "renew", "--forget-old-ca", "--dir", secured.folder)
    assert len(certificates_in(ca.read_text())) == 1
    time.sleep(1.5)  # brokers look at their files once a second
    secured.admin.ok("topic", "list")
    secured.cli("admin-certificate").ok("topic", "list")
    shown = Cli().ok("security", "show", "--dir", secured.folder).out
    assert "broker-1" in shown and "admin-certificate" in shown


def test_a_cluster_gets_brokers_one_by_one(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    Cli().ok("security", "init", "--dir", folder, "--host", "one.example", "--zookeeper", "zk:2181/ottla")
    Cli().ok("security", "add-broker", "2", "--dir", folder, "--host", "two.example")
    assert "already" in Cli().fails(1, "security", "add-broker", "2", "--dir", folder, "--host", "x.example")
    bootstrap = _settings(folder, "admin")["bootstrap.servers"]
    assert bootstrap == "one.example:9093,two.example:9093"
    assert "inter.broker.listener.name=BROKERS" in (folder / "broker-2/server.properties").read_text()
    assert "in use already" in Cli().fails(1, "security", "init", "--dir", folder, "--host", "localhost")


@pytest.mark.jvm
@pytest.mark.slow
class TestKafkasOwnTools:
    @pytest.fixture(scope="class")
    def tool(self, secured: Secured) -> Tool:
        start = quick_java("128m")
        start += ["-cp", class_path(require_kafka_libs())]

        def run(client: str, name: str, *arguments: str) -> str:
            settings = secured.folder / "clients" / client / "client.properties"
            servers = _settings(secured.folder, client)["bootstrap.servers"]
            command = [*start, f"org.apache.kafka.tools.{name}", "--bootstrap-server", servers]
            outcome = subprocess.run(
                [*command, "--command-config", str(settings), *arguments], capture_output=True, text=True, timeout=120
            )
            assert outcome.returncode == 0, outcome.stdout + outcome.stderr
            return outcome.stdout

        return run

    @pytest.mark.parametrize("client", ["admin", "admin-certificate"])
    def test_get_in_with_the_files_that_were_made(self, tool: Tool, secured: Secured, client: str) -> None:
        secured.admin.ok("topic", "create", f"for-{client}")
        assert f"for-{client}" in tool(client, "TopicCommand", "--list").split()

    def test_mean_the_same_by_producer_and_consumer(self, tool: Tool, secured: Secured) -> None:
        role = (
            "--producer",
            "--consumer",
            "--topic",
            "both",
            "--group",
            "g",
            "--transactional-id",
            "x",
            "--idempotent",
        )
        tool("admin", "AclCommand", "--add", "--allow-principal", "User:theirs", *role)
        secured.admin.ok("acl", "add", "--allow", "ours", *role)

        def rights(user: str) -> list[tuple[str, ...]]:
            found = secured.admin.ok("acl", "list", "--allow", user, "--output", "json").data
            return sorted(tuple(value for key, value in one.items() if key != "principal") for one in found)

        assert rights("ours") == rights("theirs")
        assert rights("ours")
