"""The broker goes away in the middle and comes back: other makers' clients go on, and nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.foreign.clients import AgentClient, Client, ConfluentClient, Sent
from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.support.process import BrokerProcess

pytestmark = [pytest.mark.foreign, pytest.mark.xdist_group("foreign")]
CLIENTS = ["java", "kafkajs", "franz-go", "confluent"]


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_clients_of_all_makers_survive_a_restart(
    own_broker: BrokerProcess, clients: Callable[[str], Client], kill: bool
) -> None:
    members = [(client, clients(client)) for client in CLIENTS]
    topic = create_topic(own_broker, "restarted", 4)
    for name, client in members:
        client.join(own_broker.bootstrap, f"restart-{name}-{kill}", f"group-{name}", [topic])
    # `kafkajs` is not idempotent unless asked; the others must neither lose nor double a record over the restart.
    producers = {"java": clients("java"), "franz-go": clients("franz-go")}
    produced = [b"%s-%04d" % (name.encode(), n) for name in producers for n in range(200)]
    try:
        _produce_around_a_restart(own_broker, topic, producers, kill)
        for name, client in members:
            seen = eventually(
                lambda client=client, name=name: client.seen(f"restart-{name}-{kill}").records,  # type: ignore[misc]
                lambda records: {one.value for one in records} >= set(produced),
                within_s=60,
            )
            first_seen = {(one.partition, one.offset): one.value for one in seen}
            assert sorted(value or b"" for value in first_seen.values()) == sorted(produced), (
                f"{name} read other records"
            )
    finally:
        for name, client in members:
            client.leave(f"restart-{name}-{kill}")


def _produce_around_a_restart(broker: BrokerProcess, topic: str, producers: dict[str, Client], kill: bool) -> None:
    """The first half before, then the broker goes, and the second half is sent while it is away."""

    def send(name: str, first: int) -> None:
        values = [b"%s-%04d" % (name.encode(), n) for n in range(first, first + 100)]
        producers[name].produce(broker.bootstrap, topic, [Sent(value[-1:], value) for value in values])

    for name in producers:
        send(name, 0)
    broker.kill() if kill else broker.stop()
    with ThreadPoolExecutor() as threads:
        promises = [threads.submit(send, name, 100) for name in producers]
        broker.start()
        for promise in promises:
            promise.result(90)


def test_a_new_client_reads_on_from_the_commit_of_before_the_crash(
    own_broker: BrokerProcess, clients: Callable[[str], Client]
) -> None:
    java = clients("java")
    assert isinstance(java, AgentClient)
    topic, writer = create_topic(own_broker, "crashed"), ConfluentClient()
    writer.produce(own_broker.bootstrap, topic, [Sent(None, b"%d" % n) for n in range(10)])
    java.join(own_broker.bootstrap, "before-crash", "steady", [topic])
    committed = {f"{topic}-0": 10}
    eventually(
        lambda: java.agent.call("group_offsets", bootstrap=own_broker.bootstrap, group="steady"), committed.__eq__
    )
    java.leave("before-crash")
    own_broker.restart(kill=True)
    writer.produce(own_broker.bootstrap, topic, [Sent(None, b"%d" % n) for n in range(10, 15)])
    writer.join(own_broker.bootstrap, "after-crash", "steady", [topic])
    seen = eventually(lambda: writer.seen("after-crash").records, lambda records: len(records) >= 5)
    assert [one.value for one in seen] == [b"%d" % n for n in range(10, 15)]
    writer.leave("after-crash")
