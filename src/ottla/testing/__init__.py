"""A real broker inside your tests.

    from ottla.testing import Broker

    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

With pytest the fixtures `ottla_broker` (one for the session) and `ottla_topic` (a fresh topic for the test) are there
without an import.
"""

from ottla.testing.broker import Broker
from ottla.testing.movable_clock import MovableClock

__all__ = ["Broker", "MovableClock"]
