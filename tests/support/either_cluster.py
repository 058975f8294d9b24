"""A cluster of one node: our own broker in every run, Apache Kafka too in the slow suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

EITHER = ["ottla", pytest.param("kafka", marks=[pytest.mark.jvm, pytest.mark.slow])]


@contextmanager
def one_node(which: str, folder: Path, of_kafka: Mapping[str, str] | None = None) -> Iterator[str]:
    """Its bootstrap servers. `folder` and `of_kafka`, its settings, are for Kafka."""
    if which == "kafka":
        require_kafka_libs()
        with KafkaPeer(folder, of_kafka) as kafka:
            yield kafka.bootstrap
    else:
        with Broker() as broker:
            yield broker.bootstrap_servers
