"""Several instances: one writes, the others forward; whoever takes over shuts the earlier writer out."""

from __future__ import annotations

import signal
import time

import httpx
import pytest

from ottla.client.address import ClusterAddress
from ottla.client.membership import Assigned
from ottla.registry.records import mode_record
from ottla.registry.topic.election import Election, Identity, choose
from ottla.registry.topic.writer import Fenced, TooLarge, TopicWriter
from ottla.testing import Broker, Registry
from tests.registry.ordeal import Clients, InstanceProcess, check, registered
from tests.registry.test_api import INT, MORE


def make_writer(broker: Broker, topic: str) -> TopicWriter:
    writer = TopicWriter(ClusterAddress(broker.bootstrap_servers), topic, f"{topic}-writers")
    writer.create_topic()
    return writer


def test_a_writer_that_slept_through_an_election_writes_nothing(broker: Broker) -> None:
    paused, next_one = make_writer(broker, "_fenced"), make_writer(broker, "_fenced")
    assert paused.take_over() == 0
    assert paused.append([mode_record("a", "READONLY")]) == 1
    assert next_one.take_over() == 2
    with pytest.raises(Fenced):
        paused.append([mode_record("b", "READONLY")])
    assert next_one.append([mode_record("c", "READONLY"), mode_record("d", None)]) == 4
    keys = [record.key for record in broker.records("_fenced")]
    assert len(keys) == 5 and not any(b'"b"' in (key or b"") for key in keys)
    paused.close()
    next_one.close()


def test_a_writer_goes_on_after_a_record_that_is_too_large(broker: Broker) -> None:
    writer = make_writer(broker, "_large")
    writer.take_over()
    with pytest.raises(TooLarge):
        writer.append([mode_record("x" * 2_000_000, "READONLY")])
    assert writer.append([mode_record("a", "READONLY")]) == 1
    assert writer.take_over() == 2, "it may take over from itself"
    writer.close()


def test_the_writer_stays_the_same_while_it_can() -> None:
    first, second, third = Identity("a", 1), Identity("b", 1), Identity("c", 1, is_eligible=False)
    assert choose({"m2": second, "m1": first}, None) == "m1"
    assert choose({"m2": second, "m1": first}, second) == "m2"
    assert choose({"m3": third}, None) is None
    assert Identity.decode(first.encode()) == first


GARBAGE = [b"", b"{", b"[]", b"7", b"{}", b'{"host": "a"}', b'{"host": "a", "port": "x"}', b"[" * 100_000]


def test_who_joins_the_group_and_talks_nonsense_stands_in_nobodys_way() -> None:
    told: list[Identity | None] = []
    address, timing = ClusterAddress("127.0.0.1:1"), {"session_timeout_ms": 1, "heartbeat_ms": 1}
    own = Identity("b", 1)
    election = Election(address, "g", own, told.append, rebalance_timeout_ms=1, **timing)
    members = {f"m{number}": garbage for number, garbage in enumerate(GARBAGE)} | {"ours": election._metadata()}
    assigned = election._assignments(members)
    assert assigned.keys() == members.keys()
    for assignment in (*GARBAGE, b'{"master_identity": 7}', b'{"master_identity": {}}', assigned["ours"]):
        election._learn(Assigned(assignment, 1, "ours", "another"))
    assert told == [None] * (len(GARBAGE) + 2) + [own]


def test_every_instance_takes_registrations_and_knows_them(broker: Broker) -> None:
    settings = {"topic": "_two", "group": "two"}
    with Registry(broker.bootstrap_servers, **settings) as one, Registry(broker.bootstrap_servers, **settings) as two:
        http = httpx.Client(trust_env=False, timeout=60)
        first = http.post(f"{one.url}/subjects/a/versions", json={"schema": INT})
        again = http.post(f"{two.url}/subjects/a/versions", json={"schema": INT})
        assert first.status_code == again.status_code == 200
        assert first.json() == again.json()
        more = http.post(f"{two.url}/subjects/a/versions", json={"schema": MORE}).json()
        assert more["version"] == 2
        refused = http.post(f"{two.url}/subjects/a/versions", json={"schema": '"int"'})
        assert refused.json()["error_code"] == 40901, "refusals come back as they are"
        while registered(one.url) != registered(two.url):
            time.sleep(0.01)
        assert len(registered(two.url)) == 2
        assert http.delete(f"{two.url}/subjects/a").json() == [1, 2]
        http.close()


def test_a_topic_is_given_to_the_next_registry_as_it_is(broker: Broker) -> None:
    settings = {"topic": "_given", "group": "given"}
    with Registry(broker.bootstrap_servers, **settings) as registry, httpx.Client(base_url=registry.url) as http:
        http.post("/subjects/a/versions", json={"schema": INT})
        http.post("/subjects/a/versions", json={"schema": MORE})
        http.delete("/subjects/a/versions/1")
        http.put("/config/a", json={"compatibility": "FULL"})
        http.put("/mode/b", json={"mode": "READONLY"})
    with Registry(broker.bootstrap_servers, **settings) as registry, httpx.Client(base_url=registry.url) as http:
        assert http.get("/subjects/a/versions").json() == [2]
        assert http.get("/subjects/a/versions?deleted=true").json() == [1, 2]
        assert http.get("/config/a").json() == {"compatibilityLevel": "FULL"}
        assert http.get("/mode/b").json() == {"mode": "READONLY"}
        assert http.post("/subjects/c/versions", json={"schema": '"bytes"'}).json()["id"] == 3


def ordeal(rounds: int, topic: str) -> None:
    """The writer is killed again and again, or paused until another has taken over."""
    with Broker({"group.min.session.timeout.ms": "500"}) as broker:
        instances = [InstanceProcess(broker.bootstrap_servers, topic) for _ in range(2)]
        urls = [instance.url for instance in instances]
        clients = Clients(urls, 3)
        try:
            for instance in instances:
                instance.start()
            clients.start()
            for turn in range(rounds):
                victim = instances[turn % 2]
                _until_more(clients, 20)
                if turn % 3 == 2:
                    victim.kill(signal.SIGSTOP)
                    _until_more(clients, 5)
                    victim.kill(signal.SIGCONT)
                else:
                    victim.kill()
                    _until_more(clients, 5)
                    victim.start()
            _until_more(clients, 20)
            clients.stop()
            while registered(urls[0]) != registered(urls[1]):
                time.sleep(0.05)
            check(clients, urls)
        finally:
            clients.stop()
            for instance in instances:
                instance.end()


def _until_more(clients: Clients, count: int) -> None:
    wanted, deadline = clients.answered() + count, time.monotonic() + 120
    while clients.answered() < wanted:
        assert not clients.refusals
        assert time.monotonic() < deadline, "registrations do not get through"
        time.sleep(0.05)


def test_no_id_is_given_twice_when_an_instance_is_killed() -> None:
    ordeal(1, "_killed")


@pytest.mark.slow
def test_no_id_is_given_twice_in_a_long_ordeal() -> None:
    ordeal(12, "_ordeal")
