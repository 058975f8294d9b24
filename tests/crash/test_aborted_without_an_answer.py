"""A transaction that is given up while an answer to its records is lost must not cost the next one anything.

librdkafka uses the sequence numbers of such records again. A broker that takes the new record for a repetition of the
old one acknowledges it and drops it, and the transaction is committed without it; Apache Kafka 4.3.1 does.
"""

from __future__ import annotations

import time

import pytest

from ottla.testing import Broker
from tests.support.proxy import Proxy
from tests.support.transactional_libraries import TRANSACTIONAL, Failed, read_values

TOPIC = "aborted-without-an-answer"


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_nothing_of_the_next_transaction_is_lost(name: str) -> None:
    committed = [b"first"]
    with Proxy() as proxy, Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        proxy.target = int(broker.bootstrap_servers.rpartition(":")[2])
        broker.create_topic(TOPIC, 1)
        with TRANSACTIONAL[name](proxy.address, f"id-{name}") as producer:
            producer.begin()
            producer.send(TOPIC, b"first")
            producer.commit()

            proxy.lose_produce_answers(1)
            producer.begin()
            producer.send(TOPIC, b"given up")
            deadline = time.monotonic() + 30
            while not proxy.lost:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            proxy.lose_produce_answers(0)
            producer.abort()

            for number in range(3):
                value = b"next %d" % number
                try:
                    producer.begin()
                    producer.send(TOPIC, value)
                    producer.commit()
                    committed.append(value)
                except Failed:
                    producer.abort()
            assert len(committed) > 1
        assert read_values(broker.bootstrap_servers, TOPIC) == committed
