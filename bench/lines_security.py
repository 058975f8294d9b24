"""Lines of security: TLS listeners of both brokers, by librdkafka and by plain requests and handshakes over TLS; and a
broker that asks an authorizer with a thousand ACLs against one that asks nobody."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

from bench import frames
from bench.contenders import QUICK, Contender, Scale, arms
from bench.lines_clients import CLIENT_SECONDS_MAX, RECORDS, REPO_ROOT
from bench.lines_wire import single_produce
from bench.measure import Arm, Comparison, InTurns, Values, cost, throughput
from ottla.protocol.messages import CreateAclsRequest
from tests.support.brokers import OttlaProcess
from tests.support.certificates import Certificates
from tests.support.kafka_peer import KafkaPeer
from tests.support.process import free_ports

ACLS = 1_000
BUSY_CONNECTIONS = 16
WITHIN_TEN_PERCENT = 0.9
RECORD_BYTES = 1_000
TLS_CONNECTIONS = 8
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:nobody",
    "allow.everyone.if.no.acl.found": "true",  # until the ACLs are there
}
_CREATE_ACLS = 30
_TOPIC, _CLUSTER, _LITERAL, _PREFIXED, _ALL, _READ, _ALLOW = 2, 4, 3, 4, 2, 3, 3


# --- an authorizer


def authorizer_line(without: Contender, guarded: Contender) -> Comparison:
    _create_acls(guarded)
    in_turns = InTurns([without, guarded], _single)
    return Comparison(
        "authorizer",
        f"{BUSY_CONNECTIONS} connections, {ACLS:,} ACLs",
        [
            throughput("single", "requests/s", goal=WITHIN_TEN_PERCENT, digits=0),
            cost("broker CPU", "s per M requests", goal=WITHIN_TEN_PERCENT, digits=1),
        ],
        [
            Arm("no authorizer", lambda: in_turns.measure(without), lambda: _single(without)),
            Arm("with ACLs", lambda: in_turns.measure(guarded), lambda: _single(guarded)),
        ],
    )


def _single(contender: Contender) -> Values:
    values = single_produce(contender, BUSY_CONNECTIONS, scale=QUICK)
    return {"single": values["throughput"], "broker CPU": values["broker CPU"]}


def _create_acls(contender: Contender) -> None:
    """The client of the measurement is not a super user, who would be asked nothing: it has what it needs by ACLs."""

    def acl(kind: int, name: str, user: str, operation: int, pattern: int = _LITERAL) -> CreateAclsRequest.AclCreation:
        return CreateAclsRequest.AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=_ALLOW,
        )

    wanted = [
        acl(_CLUSTER, "kafka-cluster", "ANONYMOUS", _ALL),
        acl(_TOPIC, "bench-", "ANONYMOUS", _ALL, _PREFIXED),
        *(
            acl(
                _TOPIC,
                f"bench-{number}" if number % 2 else f"b{number}",
                f"user-{number}",
                _READ,
                _LITERAL + number % 2,
            )
            for number in range(ACLS - 2)
        ),
    ]
    with contender.connect() as connection:
        results = connection.ask(_CREATE_ACLS, 3, CreateAclsRequest(creations=wanted)).results
    if len(results) != ACLS or any(one.error_code for one in results):
        raise RuntimeError(f"ACLs were refused: {next(one for one in results if one.error_code)}")


# --- TLS


class _OttlaWithTls(OttlaProcess):
    def __init__(self, folder: Path, properties: dict[str, str]) -> None:
        super().__init__(folder, properties)
        (self.tls_port,) = free_ports(1)

    def command(self) -> list[str]:
        command = super().command()
        at = command.index("--listen") + 1
        command[at] = f"PLAINTEXT://{self.bootstrap},SSL://{self.host}:{self.tls_port}"
        return command


class TlsContender(Contender):
    """A broker with a listener for each: topics are made without TLS, what is measured goes with it."""

    def __init__(self, label: str, broker: KafkaPeer | _OttlaWithTls, ca: Path, scale: Scale) -> None:
        super().__init__(label, broker, scale)
        self._with_tls = broker
        self.ca = ca

    @property
    def tls_port(self) -> int:
        broker = self._with_tls  # Kafka's may choose again when it starts
        return int(broker.address("SSL").rpartition(":")[2]) if isinstance(broker, KafkaPeer) else broker.tls_port

    @classmethod
    def make(cls, label: str, kind: object, folder: Path, scale: Scale) -> TlsContender:
        """It is not started yet."""
        folder.mkdir(parents=True)
        certificates = Certificates(folder)
        properties = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.issue("localhost", "127.0.0.1")),
        }
        if kind == "kafka":
            peer = KafkaPeer(folder / "broker", properties, ["SSL"])
            peer.format()
            return cls(label, peer, certificates.ca, scale)
        return cls(label, _OttlaWithTls(folder / "broker", properties), certificates.ca, scale)

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def connect_by_tls(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        plain = socket.create_connection((self.broker.host, self.tls_port), 30)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname="localhost")


def tls_line(contenders: list[TlsContender]) -> Comparison:
    return Comparison(
        "tls",
        f"TLS: librdkafka, {RECORD_BYTES:,} B; requests and handshakes of {TLS_CONNECTIONS} connections",
        [
            throughput("produce", "MB/s"),
            throughput("consume", "MB/s"),
            throughput("single", "requests/s", digits=0),
            throughput("handshakes", "handshakes/s", digits=0),
        ],
        arms(contenders, _tls_round, _tls_round),
    )


def _tls_round(contender: Contender) -> Values:
    assert isinstance(contender, TlsContender)
    records = int(RECORDS[RECORD_BYTES] * contender.scale.client_share)
    volume = records * RECORD_BYTES / 1e6
    with contender.topic() as topic:
        produced, consumed = (volume / _librdkafka(role, contender, topic.name, records) for role in _ROLES)
    with contender.topic() as topic:
        path = frames.write(contender.scratch("tls-single"), [frames.produce(topic.id, 0, frames.batch(1, 100))])
        requests = _per_second(contender, path.read_bytes())
    return {"produce": produced, "consume": consumed, "single": requests, "handshakes": _per_second(contender, None)}


_ROLES = ("produce", "consume")


def _librdkafka(role: str, contender: TlsContender, topic: str, records: int) -> float:
    """Seconds."""
    bootstrap = f"{contender.broker.host}:{contender.tls_port}"
    done = subprocess.run(
        [sys.executable, "-m", "bench.librdkafka_client", role, bootstrap, topic, str(records), str(RECORD_BYTES)],
        cwd=REPO_ROOT,
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS_MAX,
        env={**os.environ, "BENCH_CA": str(contender.ca)},
    )
    if done.returncode != 0:
        raise RuntimeError(f"a client failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout)


def _per_second(contender: TlsContender, request: bytes | None) -> float:
    """How often a request is answered, or without one how often somebody comes in through the handshake; the client's
    threads wait in OpenSSL and the kernel, without the GIL."""
    context, counts = contender.context(), [0] * TLS_CONNECTIONS
    failures: list[BaseException] = []
    began = time.perf_counter()
    until = began + contender.scale.seconds

    def work(number: int) -> None:
        try:
            while time.perf_counter() < until:
                with contender.connect_by_tls(context) as connection:
                    if request is None:
                        counts[number] += 1
                        continue
                    while time.perf_counter() < until:
                        connection.sendall(request)
                        _receive(connection)
                        counts[number] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(TLS_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - began)


def _receive(connection: ssl.SSLSocket) -> None:
    answer = bytearray()
    while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError("the broker closed the connection")
        answer += piece
