"""Questions to a cluster in which brokers are killed: librdkafka gives up on some errors that pass by themselves (a
coordinator that loads, a leader that is being elected, a broker that does not answer in time), so they are asked
again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException

PATIENCE_S = 180.0
T = TypeVar("T")


def answered(ask: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return ask()
        except KafkaException as error:
            if time.monotonic() > deadline or error.args[0].fatal():
                raise
        time.sleep(0.1)
