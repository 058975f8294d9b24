"""The peer itself: Apache Kafka starts from the jars, comes back on the same port, and leaves nothing running."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.process import answers_api_versions

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


def test_kafka_starts_restarts_on_the_same_address_and_ends(tmp_path: Path) -> None:
    require_kafka_libs()
    with KafkaPeer(tmp_path) as kafka:
        address = kafka.bootstrap
        assert answers_api_versions(kafka.host, kafka.port)
        assert kafka.cpu_seconds() > 0
        assert kafka.rss_bytes() > 50_000_000
        kafka.restart()
        assert kafka.bootstrap == address
        pid = kafka.pid
    assert not answers_api_versions(kafka.host, kafka.port)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
