"""kill -9 in the middle of creating and deleting topics: what was answered is so, and no producer id comes twice."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from tests.support.brokers import OttlaProcess
from tests.support.raw_client import RawClient

ROUNDS = 4
LOAD_S = 0.4


class Load:
    """Creates topics, deletes every third, and takes producer ids until the broker dies; remembers the answers."""

    def __init__(self, bootstrap: str, number: int, known: set[str]) -> None:
        self.kept: set[str] = set(known)
        self.deleted: set[str] = set()
        self.unknown: set[str] = set()  # asked for, but the answer never came
        self.ids: list[int] = []
        self._bootstrap = bootstrap
        self._number = number
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with RawClient.to(self._bootstrap) as client:
                for index in range(10_000):
                    self._step(client, f"t-{self._number}-{index}", index)
        except OSError:
            pass

    def _step(self, client: RawClient, name: str, index: int) -> None:
        self.unknown = {name}
        topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        (answer,) = client.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7).topics
        assert answer.error_code == ErrorCode.NONE
        self.kept.add(name)
        if index % 3 == 2:
            victim = f"t-{self._number}-{index - 1}"
            self.unknown = {victim}
            self.kept.discard(victim)
            client.call(m.DeleteTopicsRequest(topic_names=[victim], timeout_ms=20_000), 5)
            self.deleted.add(victim)
        self.unknown = set()
        self.ids.append(client.call(m.InitProducerIdRequest(transactional_id=None), 5).producer_id)


def topics_of(bootstrap: str) -> dict[str, Any]:
    with RawClient.to(bootstrap) as client:
        answer = client.call(m.MetadataRequest(topics=None), 12)
    return {topic.name: topic for topic in answer.topics}


def test_acknowledged_changes_survive_kill_9(tmp_path: Path) -> None:
    known: set[str] = set()
    deleted: set[str] = set()
    ids: list[int] = []
    with OttlaProcess(tmp_path) as broker:
        for number in range(ROUNDS):
            load = Load(broker.bootstrap, number, known)
            time.sleep(LOAD_S + number * 0.013)
            broker.kill()
            load.thread.join(20)
            assert len(load.kept) > len(known), "the load did nothing"
            ids += load.ids
            deleted |= load.deleted
            broker.start()
            found = topics_of(broker.bootstrap)
            assert load.kept <= found.keys()
            assert not deleted & found.keys()
            assert found.keys() <= load.kept | load.unknown
            known = set(found)
        assert len(set(ids)) == len(ids)
        # Every topic that is there has its folders, and what is deleted left no stray behind.
        folders = {one.name for one in broker.data_dir.iterdir() if one.is_dir()}
        assert {f"{name}-{index}" for name in known for index in range(2)} <= folders
        assert not [name for name in folders if name.endswith("-stray")]
