"""A broker whose answers a test says: for what no real one can be made to do at a given moment.

    def fetch(request, version):
        return FetchResponse(...)

    with ScriptedBroker({"t": 2}, Fetch=fetch) as broker:
        broker.bootstrap, broker.asked["Fetch"]

It answers ApiVersions and Metadata itself: one node, which leads every partition of these topics. `versions` limits
what it says it knows, by the names of requests; others have all that our codec has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ottla.common.errors import ErrorCode
from ottla.common.ids import ZERO_TOPIC_ID, TopicId
from ottla.protocol import codec
from ottla.protocol import messages as m
from tests.support.frame_server import FrameServer, answered

Answer = Callable[[Any, int], codec.Message]
NODE = 1


class ScriptedBroker(FrameServer):
    def __init__(
        self,
        partitions: Mapping[str, int],
        *,
        topic_ids: Mapping[str, TopicId] | None = None,
        versions: Mapping[str, tuple[int, int]] | None = None,
        **answers: Answer,
    ) -> None:
        self.partitions, self.topic_ids = dict(partitions), dict(topic_ids or {})
        self.leader_epoch = 0
        self.answers: dict[str, Answer] = {
            "ApiVersions": lambda _, __: m.ApiVersionsResponse(api_keys=self._ranges(versions or {})),
            "Metadata": lambda request, _: self._metadata(request),
            **answers,
        }
        self._by_key = {codec.definition(f"{name}Request")["key"]: name for name in self.answers}
        # What was asked, by name.
        self.asked: dict[str, list[Any]] = {name: [] for name in self.answers}
        super().__init__(lambda: self._answer_to)

    def _answer_to(self, frame: bytes) -> bytes | None:
        return answered(frame, self._by_key, self._reply)

    def _reply(self, name: str, request: Any, version: int) -> codec.Message:
        self.asked[name].append(request)
        return self.answers[name](request, version)

    def _ranges(self, limits: Mapping[str, tuple[int, int]]) -> list[m.ApiVersionsResponse.ApiVersion]:
        found = []
        for key, name in self._by_key.items():
            low, high = limits.get(name) or codec.version_range(codec.definition(f"{name}Request")["versions"])
            found.append(m.ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high))
        return found

    def _metadata(self, request: Any) -> codec.Message:
        names = list(self.partitions) if request.topics is None else [one.name for one in request.topics]
        return m.MetadataResponse(
            brokers=[m.MetadataResponse.MetadataResponseBroker(node_id=NODE, host="127.0.0.1", port=self.port)],
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> m.MetadataResponse.MetadataResponseTopic:
        partition = m.MetadataResponse.MetadataResponsePartition
        if name not in self.partitions:
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return m.MetadataResponse.MetadataResponseTopic(error_code=missing, name=name)
        rows = [
            partition(partition_index=index, leader_id=NODE, leader_epoch=self.leader_epoch)
            for index in range(self.partitions[name])
        ]
        topic_id = self.topic_ids.get(name, ZERO_TOPIC_ID)
        return m.MetadataResponse.MetadataResponseTopic(name=name, topic_id=topic_id, partitions=rows)
