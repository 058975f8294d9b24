"""What librdkafka says of a broker that does not let it in, as soon as it says it.

A call of a client that is refused would try again until its own time is out: seconds in which nothing is learned.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

TRY_S = 0.2
TIMEOUT_S = 30


def refusals(settings: dict[str, Any]) -> list[KafkaError]:
    """The first errors of connections; none, if the client is let in."""
    errors: list[KafkaError] = []
    admin = AdminClient({"log_level": 0, **settings, "error_cb": errors.append})
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            assert admin.list_topics(timeout=TRY_S).brokers
            return []
        except KafkaException:
            admin.poll(0)
            if told := [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]:
                return told
            assert time.monotonic() < deadline, f"neither let in nor refused: {errors}"
