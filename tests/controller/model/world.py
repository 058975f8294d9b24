"""A cluster in which everything that can happen happens at random, from one seed; checked after every step.

The store is the truth: `image`. Only the controller changes it, and brokers when they register or lose their session.
Processes see it when they happen to look (`processes.py`); requests to the controller arrive late or not at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.common.steps import to_the_end
from ottla.controller.broker_changes import Changes, broker_gone, controlled_shutdown, next_registration, reconcile
from ottla.controller.isr_changes import alter_partition
from ottla.controller.log_dirs import replicas_offline
from ottla.controller.missing_replicas import missing_replicas
from ottla.controller.placement import placement_of
from ottla.controller.preferred import PREFERRED, UNCLEAN, elect_leaders, rebalance
from ottla.controller.reassignments import alter_reassignments
from ottla.controller.rule_changes import min_insync_changed
from ottla.controller.rules import Rules
from ottla.controller.topic_plan import NewTopic, plan_topic
from ottla.metadata import image as images
from ottla.metadata.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, Registration, TopicImage
from ottla.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ElectLeadersRequest,
)
from tests.controller.cluster import applied, with_presence
from tests.controller.model.ghost import Ghost, Record, Violation
from tests.controller.model.processes import Key, Process

T = TypeVar("T")

MIN_INSYNC, UNCLEAN_ELECTION = "min.insync.replicas", "unclean.leader.election.enable"


def min_insync_of(topic: TopicImage) -> int:
    """What leaders go by."""
    assert topic.min_insync is not None
    return topic.min_insync


def min_insync_set(topic: TopicImage) -> int:
    return int(topic.configs[MIN_INSYNC])


def is_unclean(topic: TopicImage) -> bool:
    return topic.configs[UNCLEAN_ELECTION] == "true"


RULES = Rules(min_insync_set, is_unclean)


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.image = ClusterImage("cluster")
        self.processes = {broker: Process(broker) for broker in range(1, self.random.randint(3, 5) + 1)}
        self.ghosts: dict[Key, Ghost] = {}
        # Requests to the controller that are under way.
        self.requests: list[AlterPartitionRequest] = []
        self.offline_reports: list[tuple[int, int, TopicId, int]] = []
        # Disks that were taken out, and how many there ever were.
        self.shelf: dict[int, list[tuple[int, dict[Key, list[Record]], set[Key]]]] = {}
        self.disks = 1
        self.transcript: list[str] = []
        self.numbers = 0
        for broker in self.processes:
            self.register(broker)
        self.write(reconcile(self.image, RULES))
        self.create_topic()
        for process in self.processes.values():
            process.see(self.image)

    def run(self, steps: int) -> None:
        events = [event for event, weight in EVENTS.items() for _ in range(weight)]
        for _ in range(steps):
            event = self.random.choice(events)
            self.transcript.append(event.__name__)
            event(self)
            self.check_leaders()
        self.heal()

    # --- what is checked

    def write(self, changes: Changes, *, unclean: bool = False, proposed: Collection[int] = ()) -> None:
        """The controller's one write. `unclean`: somebody has asked for elections of that kind; `proposed`: a leader
        has asked for this ISR."""
        for name, after in changes.topics.items():
            before = self.image.topics[name]
            for index, (old, new) in enumerate(zip(before.partitions, after.partitions, strict=True)):
                self.check_change(Key(name, index), after, old, new, unclean=unclean, proposed=proposed)
        self.image = applied(self.image, changes)

    def write_topics(
        self, topics: dict[str, TopicImage], *, unclean: bool = False, proposed: Collection[int] = ()
    ) -> None:
        self.write(Changes(topics, {}), unclean=unclean, proposed=proposed)

    def check_change(
        self,
        key: Key,
        topic: TopicImage,
        old: PartitionImage,
        new: PartitionImage,
        *,
        unclean: bool,
        proposed: Collection[int],
    ) -> None:
        self.transcript.append(f"    {key}: {old} -> {new}")
        ensure(set(new.isr) <= set(new.replicas), "the ISR is among the replicas")
        ensure(set(new.elr) <= set(new.replicas), "the ELR is among the replicas")
        ensure(not set(new.elr) & set(new.isr), "nobody is in both")
        ensure(new.leader == NO_LEADER or new.leader in new.isr, "the leader is in sync")
        ensure(new.leader_epoch in (old.leader_epoch, old.leader_epoch + 1), "leader epochs grow one by one")
        is_raised = new.partition_epoch == old.partition_epoch + 1
        ensure(is_raised or (new == old), "every change raises the partition epoch by one")
        ensure(new.leader == old.leader or new.leader_epoch > old.leader_epoch, "another leader, another epoch")
        ghost, min_insync = self.ghosts[key], min_insync_of(topic)
        if len(new.isr) >= min(min_insync, len(new.replicas)):
            ensure(not new.elr, "nobody is eligible while records are committed")
        if new.leader != NO_LEADER:
            leader = self.processes[new.leader]
            registration = self.image.registrations[new.leader]
            # It may have caught up, and not have heard of it.
            is_in_sync = registration.is_active and new.leader in {*old.isr, *proposed}
            ghost.elected(
                old,
                new,
                leader.log(key),
                proposed=proposed,
                unclean=unclean or is_unclean(topic),
                is_running=leader.epoch == registration.epoch and key not in leader.failed,
                is_emptied=leader.epoch == registration.epoch and key in leader.emptied and not is_in_sync,
            )
        ghost.changed(old, new, min_insync)

    def check_leaders(self) -> None:
        """Whoever leads by the store, and runs, has all that was committed."""
        for key, ghost in self.ghosts.items():
            partition = self.image.topics[key.topic].partitions[key.index]
            leader = self.processes.get(partition.leader)
            if leader is None or key in leader.failed or partition.leader not in self.image.brokers:
                continue
            if leader.epoch == self.image.brokers[partition.leader].epoch and not ghost.is_whole(leader.log(key)):
                raise Violation(f"{key} is led by {leader.id}, which lacks committed records")

    def check_settled(self) -> None:
        """After the controller has looked at everything."""
        again = reconcile(self.image, RULES)
        ensure(again == Changes({}, {}), f"looking again finds nothing to do, not {again}")
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                ensure(set(partition.isr) <= self.image.brokers.keys(), "who is in sync is live")
                staying = self.image.brokers.keys() - set(partition.offline) - self.stopping()
                ensure(
                    partition.leader != NO_LEADER or not staying & {*partition.isr, *partition.elr},
                    "a partition that can have a leader has one",
                )

    def stopping(self) -> set[int]:
        return {broker for broker, known in self.image.registrations.items() if known.is_stopping}

    def heal(self) -> None:
        """Everybody restarts, and sees everything: no partition is stuck."""
        self.requests, self.offline_reports = [], []
        for process in self.processes.values():
            self.stop(process)
            self.register(process.id)
        self.write(reconcile(self.image, RULES))
        self.check_settled()
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                is_waiting = partition.leader == NO_LEADER and partition.last_known_leader in partition.emptied
                ensure(
                    is_waiting or partition.leader in self.image.brokers,
                    "a partition whose brokers are all there has a leader, or waits for the disk of the last one",
                )

    # --- processes

    def append(self) -> None:
        for process in self.processes.values():
            for key, leadership in process.leading.items():
                self.numbers += 1
                process.log(key).append(Record(leadership.leader_epoch, self.numbers))

    def replicate(self) -> None:
        for key in self.ghosts:
            for leader in list(self.processes.values()):
                if key in leader.leading:
                    for follower in self.sample(self.processes.values()):
                        if follower is not leader:
                            follower.follow(key, leader, self.random.choice([0, 1, 100]))
                    self.commit(leader, key)

    def write_and_commit(self) -> None:
        self.append()
        self.replicate()
        self.replicate()

    def commit(self, leader: Process, key: Key) -> None:
        leader.commit(key, self.ghosts[key], min_insync_of(leader.view.topics[key.topic]))

    def look(self) -> None:
        process = self.random.choice(list(self.processes.values()))
        if process.epoch is not None:
            process.see(self.image)

    def all_look(self) -> None:
        for process in self.processes.values():
            if process.epoch is not None:
                process.see(self.image)

    def die(self) -> None:
        process = self.random.choice(list(self.processes.values()))
        self.stop(process)
        self.transcript.append(f"    {process.id}")

    def stop(self, process: Process) -> None:
        """One with a failed directory says at its next start that it may have lost records, and says it of them all."""
        process.die()
        if process.may_have_lost_records:
            for ghost in self.ghosts.values():
                ghost.lost(process.id)

    def lose_power(self) -> None:
        """Its machine goes down: the ends of its logs are gone."""
        process = self.random.choice(list(self.processes.values()))
        process.may_have_lost_records = True
        self.stop(process)
        for log in process.logs.values():
            del log[self.random.randint(0, len(log)) :]
        self.transcript.append(f"    {process.id}")

    def replace_disk(self) -> None:
        """It starts with an empty one; the old one may come back later."""
        process = self.random.choice(list(self.processes.values()))
        self.stop(process)
        self.shelf.setdefault(process.id, []).append((process.disk, process.logs, process.emptied))
        process.disk, process.logs, process.emptied = self.disks, {}, set()
        self.disks += 1
        for ghost in self.ghosts.values():
            ghost.lost(process.id)
        self.transcript.append(f"    {process.id}")

    def return_disk(self) -> None:
        process = self.random.choice(list(self.processes.values()))
        if self.shelf.get(process.id):
            self.stop(process)
            process.disk, process.logs, process.emptied = self.shelf[process.id].pop()
            for ghost in self.ghosts.values():
                ghost.lost(process.id)
            self.transcript.append(f"    {process.id}")

    def fail_directory(self) -> None:
        process = self.random.choice(list(self.processes.values()))
        if process.epoch is None or not process.logs:
            return
        key = self.random.choice(list(process.logs))
        process.failed.add(key)
        process.leading.pop(key, None)
        self.ghosts[key].lost(process.id)
        if self.random.random() < 0.5:
            process.log(key).clear()
        topic = self.image.topics[key.topic]
        self.offline_reports.append((process.id, process.epoch, topic.id, key.index))

    def restart(self) -> None:
        """Who does not run starts; who finds itself fenced registers anew."""
        for process in self.sample(self.processes.values()):
            node = self.image.present.get(process.id)
            if process.epoch is None or node is None or node.epoch != process.epoch:
                self.stop(process)
                self.register(process.id)

    def register(self, broker: int) -> None:
        process = self.processes[broker]
        about = self.about(process)
        new = next_registration(self.image.registrations.get(broker), about)
        self.transcript.append(f"    {broker}: {new}")
        process.epoch, process.may_have_lost_records = new.epoch, False
        self.image = replace(self.image, registrations={**self.image.registrations, broker: new})
        node = BrokerImage(broker, None, {}, new.epoch)
        self.image = with_presence(self.image, {**self.image.present, broker: node})
        process.see(self.image)

    def about(self, process: Process) -> Registration:
        here = str(process.disk)
        found = {TopicPartition(*key): here for key in process.logs}
        process.emptied |= {Key(*tp) for tp in missing_replicas(self.image, process.id, [here], found)}
        missing: dict[TopicId, tuple[int, ...]] = {}
        for key in sorted(process.emptied):
            self.ghosts[key].lost(process.id)  # also where it was born without it: nobody can tell
            topic_id = self.image.topics[key.topic].id
            missing[topic_id] = (*missing.get(topic_id, ()), key.index)
        return Registration(
            0,
            is_active=False,
            may_have_lost_records=process.may_have_lost_records,
            directories=(here,),
            missing=missing,
        )

    def lose_session(self) -> None:
        """Also of a process that runs: it may be paused, or cut off."""
        present = dict(self.image.present)
        if present:
            gone = self.random.choice(list(present))
            if self.processes[gone].epoch is None or self.random.random() < 0.3:
                del present[gone]
                self.image = with_presence(self.image, present)

    # --- the controller

    def look_at_everything(self) -> None:
        self.write(reconcile(self.image, RULES))
        self.check_settled()

    def fence(self) -> None:
        """By a verdict that may be wrong."""
        if self.image.brokers:
            gone = self.random.choice(list(self.image.brokers))
            if self.processes[gone].epoch is None or self.random.random() < 0.2:
                self.write(broker_gone(self.image, gone, RULES))
                self.check_settled()

    def shut_down(self) -> None:
        if self.image.brokers:
            self.write(controlled_shutdown(self.image, self.random.choice(list(self.image.brokers)), RULES))
            self.check_settled()

    def propose(self) -> None:
        """A leader asks for everybody who has caught up, or for fewer, by what it knows."""
        leaders = [(process, key) for process in self.processes.values() for key in process.leading]
        if not leaders:
            return
        process, key = self.random.choice(leaders)
        leadership, partition = process.leading[key], process.partition(key)
        if leadership.proposed_at is not None or process.epoch is None:
            return
        epochs = process.caught_up(key)
        members = [member for member in self.sample(partition.replicas) if member in epochs and member != process.id]
        leadership.pending, leadership.proposed_at = set(members), partition.partition_epoch
        states = [
            AlterPartitionRequest.BrokerState(broker_id=member, broker_epoch=epochs[member]) for member in members
        ]
        states.append(AlterPartitionRequest.BrokerState(broker_id=process.id, broker_epoch=process.epoch))
        wanted = AlterPartitionRequest.PartitionData(
            partition_index=key.index,
            leader_epoch=leadership.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=states,
        )
        topic_id = process.view.topics[key.topic].id
        self.requests.append(
            AlterPartitionRequest(
                broker_id=process.id,
                broker_epoch=process.epoch,
                topics=[AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=[wanted])],
            )
        )

    def receive(self) -> None:
        """The controller gets a proposal, maybe an old one; the answer may get lost."""
        if not self.requests:
            return
        request = self.requests.pop(self.random.randrange(len(self.requests)))
        wanted = request.topics[0].partitions[0]
        topic = self.image.topics_by_id[TopicId(request.topics[0].topic_id)]
        key, known = Key(topic.name, wanted.partition_index), topic.partitions[wanted.partition_index]
        response, topics = alter_partition(self.image, request, RULES)
        sender = self.image.brokers.get(request.broker_id)
        is_current = (
            sender is not None
            and sender.epoch == request.broker_epoch
            and (wanted.leader_epoch, wanted.partition_epoch) == (known.leader_epoch, known.partition_epoch)
        )
        ensure(is_current or not topics, "nothing changes by a stale epoch")
        proposed = {member.broker_id: member.broker_epoch for member in wanted.new_isr_with_epochs}
        for after in topics.values():
            for member in set(after.partitions[key.index].isr) - set(known.isr):
                ensure(member in proposed, "nobody joins who was not proposed")
                ensure(self.image.brokers[member].epoch == proposed[member], "nobody joins by another registration")
        self.write_topics(topics, proposed=proposed)
        process = self.processes[request.broker_id]
        if self.random.random() < 0.3 or process.epoch != request.broker_epoch or key not in process.leading:
            return
        if response.error_code or response.topics[0].partitions[0].error_code not in (0, ErrorCode.NEW_LEADER_ELECTED):
            leadership = process.leading[key]
            if (leadership.leader_epoch, leadership.proposed_at) == (wanted.leader_epoch, wanted.partition_epoch):
                leadership.end_proposal()
        else:
            process.see(self.image)

    def hear_of_directory(self) -> None:
        if self.offline_reports:
            broker, epoch, topic_id, index = self.offline_reports.pop(0)
            try:
                topics = replicas_offline(self.image, broker, epoch, [(topic_id, index)], RULES)
            except ApiError:
                return
            self.write_topics(topics)

    def reassign(self) -> None:
        key = self.random.choice(list(self.ghosts))
        known = list(self.processes)
        replicas = self.random.sample(known, self.random.randint(1, min(3, len(known))))
        wanted = AlterPartitionReassignmentsRequest.ReassignablePartition(
            partition_index=key.index, replicas=None if self.random.random() < 0.3 else replicas
        )
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name=key.topic, partitions=[wanted])
        self.write_topics(
            to_the_end(alter_reassignments(self.image, AlterPartitionReassignmentsRequest(topics=[topic]), RULES))[1]
        )

    def elect_preferred(self) -> None:
        request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None)
        self.write_topics(to_the_end(elect_leaders(self.image, request, RULES))[1])

    def elect_uncleanly(self) -> None:
        request = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=None)
        self.write_topics(to_the_end(elect_leaders(self.image, request, RULES))[1], unclean=True)

    def balance(self) -> None:
        self.write_topics(rebalance(self.image, RULES, imbalance_percentage=10))

    def change_min_insync(self) -> None:
        """The setting: it is in force when the controller has looked."""
        topic = self.random.choice(list(self.image.topics.values()))
        new = replace(topic, configs=self.settings(is_unclean=is_unclean(topic)))
        self.image = images.with_topics(self.image, [new])

    def change_min_insync_at_once(self) -> None:
        topic = self.random.choice(list(self.image.topics.values()))
        new = replace(topic, configs=self.settings(is_unclean=is_unclean(topic)))
        self.write_topics(min_insync_changed(self.image, [new], RULES))

    def create_topic(self) -> None:
        if len(self.image.topics) >= 2:
            return
        name = f"topic-{len(self.image.topics)}"
        placement = placement_of(
            self.image, default_partitions=1, default_replication_factor=1, start=self.random.randrange(10)
        )
        factor = self.random.randint(1, min(3, len(self.processes)))
        settings = self.settings(is_unclean=self.random.random() < 0.1)
        try:
            topic = plan_topic(NewTopic(name, 1, factor), TopicId(name.encode().ljust(16)), settings, placement)
        except ApiError:
            return
        topic = replace(topic, min_insync=min_insync_set(topic))
        self.image = images.with_topics(self.image, [topic])
        for index, partition in enumerate(topic.partitions):
            self.ghosts[Key(name, index)] = Ghost(partition)

    def settings(self, *, is_unclean: bool) -> Mapping[str, str]:
        return {MIN_INSYNC: str(self.random.randint(1, 3)), UNCLEAN_ELECTION: str(is_unclean).lower()}

    def sample(self, of: Iterable[T]) -> list[T]:
        """Some of them, in any order."""
        everything = list(of)
        return self.random.sample(everything, self.random.randint(0, len(everything)))


def ensure(is_true: bool, rule: str) -> None:
    if not is_true:
        raise Violation(f"broken: {rule}")


# How often each happens.
EVENTS: Mapping[Callable[[World], None], int] = {
    World.write_and_commit: 14,
    World.replicate: 6,
    World.append: 3,
    World.look: 12,
    World.all_look: 4,
    World.die: 4,
    World.lose_power: 2,
    World.replace_disk: 1,
    World.return_disk: 1,
    World.fail_directory: 1,
    World.restart: 8,
    World.lose_session: 5,
    World.look_at_everything: 10,
    World.fence: 3,
    World.shut_down: 1,
    World.propose: 14,
    World.receive: 12,
    World.hear_of_directory: 1,
    World.reassign: 2,
    World.elect_preferred: 1,
    World.elect_uncleanly: 1,
    World.balance: 1,
    World.change_min_insync: 1,
    World.change_min_insync_at_once: 1,
    World.create_topic: 1,
}
