"""What changes in the store: told in the transcript, and held against what may change, and by whom.

- Who changes topics, or who is active, is the controller of the last epoch.
- Epochs of a partition only grow; another leader has another epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.common.ids import TopicId, TopicPartition
from ottla.metadata import nodes as paths
from ottla.metadata.image import PartitionImage, Registration
from ottla.testing.simulation.checks.lives import life_of
from ottla.testing.simulation.checks.replicas import Replicas
from ottla.testing.simulation.checks.violation import Violation
from ottla.testing.simulation.ensemble import Ensemble

if TYPE_CHECKING:
    from ottla.testing.simulation.node import Node


class Stored:
    def __init__(
        self,
        ensemble: Ensemble,
        replicas: Replicas,
        nodes: Callable[[], Iterable[Node]],
        who_acts: Callable[[], str],
        say: Callable[[str, str], None],
        found: Callable[[Violation], None],
    ) -> None:
        self._ensemble, self._replicas, self._nodes = ensemble, replicas, nodes
        self._who_acts, self._say, self._found = who_acts, say, found
        self.registrations: dict[int, Registration] = {}
        self.present: set[int] = set()
        self._ids: dict[str, TopicId] = {}
        # Who took the last epoch: the name of its process.
        self._elected = ""
        self.controller_epoch = 0
        ensemble.on_change.append(self._on_change)

    @property
    def partitions(self) -> dict[TopicPartition, PartitionImage]:
        return self._replicas.partitions

    def id_of(self, topic: str) -> TopicId | None:
        return self._ids.get(topic)

    @property
    def controller(self) -> int | None:
        node = self._ensemble.tree.get(paths.CONTROLLER)
        return None if node is None else int(paths.decode(node.data)["broker"])

    def _on_change(self, number: int, changed: list[str]) -> None:
        """In the middle of a broker's call, which must not see what we find."""
        try:
            self._look_at(changed)
        except Violation as violation:
            self._found(violation)

    def _look_at(self, changed: list[str]) -> None:
        partitions: dict[TopicPartition, PartitionImage] = {}
        registrations: dict[int, Registration] = {}
        who = self._who_acts()
        for path in dict.fromkeys(changed):
            node = self._ensemble.tree.get(path)
            folder, _, name = path.rpartition("/")
            if path == paths.CONTROLLER_EPOCH and node is not None:
                self._elected, self.controller_epoch = who, paths.decode(node.data)["epoch"]
                self._say("store", f"{who} is the controller of epoch {self.controller_epoch}")
            elif folder == paths.TOPICS and node is not None:
                self._check_writer(who, path)
                topic = paths.decode_topic(name, node.data)
                self._ids[name] = topic.id
                for index, partition in enumerate(topic.partitions):
                    known_as = life_of(TopicPartition(name, index), topic.id)
                    if known_as is not None:
                        self._note_partition(known_as, partition, partitions)
            elif folder == paths.TOPICS:
                self._check_writer(who, path)
                self._say("store", f"{name} is deleted")
                self._ids.pop(name, None)
                self._replicas.forget_topic(name)
            elif folder == paths.BROKER_EPOCHS and node is not None:
                registration = paths.decode_registration(node.data)
                if registration.is_active:
                    self._check_writer(who, path)
                self.registrations[int(name)] = registrations[int(name)] = registration
                self._say("store", f"b{name}: {_registration(registration)}")
            elif folder == paths.BROKERS:
                self._note_present(int(name), node is not None)
        if partitions or registrations:
            self._replicas.note_store(partitions, registrations, self._nodes())

    def _check_writer(self, who: str, path: str) -> None:
        if who != self._elected:
            raise Violation(
                "write of a stale controller", f"{who} changes {path}, the controller is {self._elected or 'nobody'}"
            )

    def _note_partition(
        self, name: TopicPartition, new: PartitionImage, changed: dict[TopicPartition, PartitionImage]
    ) -> None:
        old = self.partitions.get(name)
        if old == new:
            return
        changed[name] = new
        self._say("store", f"{name}: {_partition(new)}")
        if old is None:
            return
        if new.leader_epoch < old.leader_epoch or new.partition_epoch <= old.partition_epoch:
            raise Violation("epochs grow", f"{name} was {_partition(old)}, becomes {_partition(new)}")
        if new.leader != old.leader and new.leader_epoch == old.leader_epoch:
            raise Violation("one leader per epoch", f"{name} was {_partition(old)}, becomes {_partition(new)}")

    def _note_present(self, broker: int, is_there: bool) -> None:
        if is_there != (broker in self.present):
            self._say("store", f"b{broker}: its node is {'there' if is_there else 'gone'}")
        (self.present.add if is_there else self.present.discard)(broker)


def _partition(image: PartitionImage) -> str:
    text = f"leader {image.leader} in epoch {image.leader_epoch}.{image.partition_epoch}, isr {_ids(image.isr)}"
    if image.elr:
        text += f", elr {_ids(image.elr)}"
    if image.last_known_leader >= 0:
        text += f", last known leader {image.last_known_leader}"
    if image.emptied:
        text += f", emptied {_ids(image.emptied)}"
    return text


def _registration(registration: Registration) -> str:
    lost = ", may have lost records" if registration.may_have_lost_records else ""
    if registration.missing:
        lost += f", {sum(map(len, registration.missing.values()))} replicas are missing"
    return f"registration {registration.epoch}, {'active' if registration.is_active else 'not active'}{lost}"


def _ids(brokers: Iterable[int]) -> str:
    return "[" + " ".join(map(str, brokers)) + "]"
