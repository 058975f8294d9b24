"""How a broker gets into the listener of another: a real one, over TLS, with right and wrong proofs of who it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.cluster.peer_access import PeerAccess, security_of_brokers
from ottla.broker.cluster.peers import Channel, PeerUnavailable
from ottla.broker.cluster.socket_peers import SocketPeers
from ottla.common.config import BrokerConfig
from ottla.common.errors import OttlaError
from ottla.metadata.image import BrokerImage
from ottla.protocol.messages import MetadataRequest
from ottla.testing import Broker
from tests.support.certificates import Certificates

SCRAM, PLAIN = "SCRAM-SHA-256", "PLAIN"


def login(mechanism: str, password: str) -> str:
    kind = "plain.PlainLoginModule" if mechanism == PLAIN else "scram.ScramLoginModule"
    users = ' user_broker="secret"' if mechanism == PLAIN else ""
    return f'org.apache.kafka.common.security.{kind} required username="broker" password="{password}"{users};'


class Scene:
    """A listener of brokers, and one who wants in."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.certificates = Certificates(folder)
        self.identity = str(self.certificates.issue("broker", "127.0.0.1"))
        self.brokers: list[Broker] = []

    def properties(self, protocol: str, **more: str) -> dict[str, str]:
        given = {
            "listeners": f"{protocol}://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.identity,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.ca),
            "ssl.client.auth": "required",
            "sasl.enabled.mechanisms": f"{SCRAM},{PLAIN}",
            "sasl.mechanism.inter.broker.protocol": SCRAM,
            "ottla.first.users": f"{SCRAM}=[name=broker,password=secret]",
            "connection.failed.authentication.delay.ms": "0",
        }
        for mechanism in (SCRAM, PLAIN):
            given[f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config"] = login(mechanism, "secret")
        return {**given, **{name.replace("__", "."): value for name, value in more.items()}}

    def serve(self, protocol: str, **more: str) -> Broker:
        broker = Broker(self.properties(protocol, **more)).start()
        self.brokers.append(broker)
        return broker

    def peers(self, broker: Broker, properties: Mapping[str, str], host: str = "127.0.0.1") -> SocketPeers:
        config = BrokerConfig.load(properties)
        loop = asyncio.get_running_loop()

        def in_thread(work: Callable[[bytes], bytes], argument: bytes) -> Any:
            return loop.run_in_executor(None, work, argument)

        name = config.listener_of_brokers.name
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        where = BrokerImage(2, None, {name: (host, port)}, 1)
        access = PeerAccess(lambda: security_of_brokers(config), in_thread)
        return SocketPeers(1, lambda _: where, name, lambda ms, call: loop.call_later(ms / 1000, call), access)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "certificates")
    yield made
    for broker in made.brokers:
        broker.stop()


async def is_answered(peers: SocketPeers) -> bool:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    answer = await peers.request(2, request, Channel.CONTROL, timeout_ms=10_000)
    return bool(answer.brokers)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL", "SASL_PLAINTEXT"])
@pytest.mark.parametrize("mechanism", [SCRAM, PLAIN])
async def test_whoever_has_the_proofs_is_let_in(scene: Scene, protocol: str, mechanism: str) -> None:
    chosen = {"sasl__mechanism__inter__broker__protocol": mechanism}
    peers = scene.peers(scene.serve(protocol), scene.properties(protocol, **chosen))
    assert await is_answered(peers)
    await peers.close()


@pytest.mark.parametrize(
    ("protocol", "what", "said"),
    [
        ("SASL_SSL", "wrong password", "did not let this one in as 'broker'"),
        ("SASL_SSL", "another authority", "from nobody we trust"),
        ("SASL_SSL", "another host", "is for another host"),
        ("SASL_SSL", "plain text", "cannot be reached|ended|closed"),
        ("SSL", "a certificate of another authority", "not accept the certificate of this"),
        ("SSL", "an expired certificate", "not accept the certificate of this"),
        ("SSL", "no certificate", "not accept the certificate of this"),
    ],
)
async def test_others_are_told_why_once(
    scene: Scene, tmp_path: Path, protocol: str, what: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker, properties, host = scene.serve(protocol), scene.properties(protocol), "127.0.0.1"
    (tmp_path / "others").mkdir()
    others = Certificates(tmp_path / "others")
    if what == "wrong password":
        properties[f"listener.name.sasl_ssl.{SCRAM.lower()}.sasl.jaas.config"] = login(SCRAM, "wrong")
    elif what == "another authority":
        properties["ssl.truststore.location"] = str(others.ca)
    elif what == "another host":
        host = "127.0.0.2"
        scene.brokers.append(broker := Broker(properties | {"listeners": "SASL_SSL://0.0.0.0:0"}).start())
    elif what == "plain text":
        properties |= {"listener.security.protocol.map": "SASL_SSL:SASL_PLAINTEXT", "ottla.plain.without.tls": "true"}
    elif what == "a certificate of another authority":
        properties["ssl.keystore.location"] = str(others.issue("broker", "127.0.0.1"))
    elif what == "an expired certificate":
        properties["ssl.keystore.location"] = str(scene.certificates.issue("broker", "127.0.0.1", is_expired=True))
    elif what == "no certificate":
        del properties["ssl.keystore.location"]
    peers = scene.peers(broker, properties, host)
    with caplog.at_level(logging.ERROR, "ottla.cluster"):
        for _ in range(3):
            with pytest.raises(PeerUnavailable, match=said) as error:
                await is_answered(peers)
            assert not error.value.refused, "it is there: nobody may take it for dead"
    await peers.close()
    if protocol == "SASL_SSL" and what != "plain text":
        assert len([record for record in caplog.records if "cannot talk to a broker" in record.getMessage()]) == 1
    assert "secret" not in caplog.text and "wrong" not in caplog.text


async def test_a_session_is_prolonged_on_its_connection(scene: Scene) -> None:
    broker = scene.serve("SASL_SSL", connections__max__reauth__ms="400")
    peers = scene.peers(broker, scene.properties("SASL_SSL"))
    assert await is_answered(peers)
    first = peers._connections[2, Channel.CONTROL]
    until = asyncio.get_running_loop().time() + 2
    while asyncio.get_running_loop().time() < until:
        assert await is_answered(peers)
        await asyncio.sleep(0.02)
    assert peers._connections[2, Channel.CONTROL] is first
    await peers.close()


async def test_a_watched_broker_that_stops_is_noticed(scene: Scene) -> None:
    broker = scene.serve("SASL_SSL", ottla__login__timeout__ms="300")
    peers = scene.peers(broker, scene.properties("SASL_SSL"))
    gone = asyncio.Event()
    peers.watch(2, 1, gone.set)
    await asyncio.sleep(1)
    assert not gone.is_set()
    await asyncio.to_thread(broker.stop)
    await asyncio.wait_for(gone.wait(), 20)
    await peers.close()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sasl.mechanism.inter.broker.protocol": None}, "set sasl.mechanism.inter.broker.protocol to PLAIN"),
        ({"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"}, "brokers fetch no tokens: set it to PLAIN"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-512"}, "which listener SASL_SSL does not offer"),
        ({"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": None}, "nothing says as whom"),
        ({"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": login(PLAIN, "x")}, "which wants ScramLoginModule"),
        ({"inter.broker.listener.name": "NOPE"}, "NOPE, which is not among the listeners"),
        ({"security.inter.broker.protocol": "SSL"}, "SSL, which is not among the listeners"),
        (
            {"security.inter.broker.protocol": "SASL_SSL", "inter.broker.listener.name": "SASL_SSL"},
            "exclude each other",
        ),
        ({"ssl.truststore.type": "JKS"}, "keytool -list -rfc -storetype JKS"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence(scene: Scene, changes: dict[str, str | None], said: str) -> None:
    given = {**scene.properties("SASL_SSL"), "zookeeper.connect": "127.0.0.1:1/nowhere", **changes}
    with pytest.raises(OttlaError, match=said):
        security_of_brokers(BrokerConfig.load({name: text for name, text in given.items() if text is not None}))
