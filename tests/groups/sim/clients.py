"""Members as real consumers behave, one `tick` at a time: they do what the protocol asks of them next.

What a client owns is what it would be reading right now. It gives up everything when it learns that it is out, a
cooperative one keeps what it has through a rebalance, and nobody reads what it was not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.common.errors import ApiError, ErrorCode
from ottla.groups import consumer_protocol
from tests.groups.desk import NotAnswered, topic_id
from tests.support.subscriptions import write_subscription

if TYPE_CHECKING:
    from tests.groups.sim.world import World

Owned = dict[str, list[int]]
GROUP = "g"


class SimClient:
    kind = ""

    def __init__(self, world: World, name: str, topics: Sequence[str], instance: str | None) -> None:
        self.world = world
        self.name = name
        self.topics = tuple(topics)
        self.instance = instance
        self.member_id = ""
        # Generation or member epoch.
        self.epoch = -1
        self.owned: Owned = {}
        self.is_alive = True
        self.is_paused = False

    def lose_everything(self) -> None:
        self.owned = {}

    def topic_is_gone(self, topic: str) -> None:
        """There is nothing left to read."""
        self.owned.pop(topic, None)

    def tick(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    def on_coordinator_restart(self) -> None:
        """The connection broke; whatever was asked got no answer."""

    @property
    def is_settled(self) -> bool:
        """A member that has nothing left to do but heartbeat."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        self.world.say(f"{self.name}: {text}")


class ClassicClient(SimClient):
    kind = "classic"

    def __init__(
        self, world: World, name: str, topics: Sequence[str], instance: str | None, *, is_cooperative: bool
    ) -> None:
        super().__init__(world, name, topics, instance)
        self.is_cooperative = is_cooperative
        self.ticket: int | None = None
        self.phase = "out"
        # What a leader made its assignment for: it asks for another when topics are not like that any more.
        self.assigned_for: dict[str, int] | None = None
        self.version = world.random.choice((3, 5, 9, 9)) if instance is None else 9

    @property
    def protocol(self) -> str:
        return "cooperative" if self.is_cooperative else "eager"

    def on_coordinator_restart(self) -> None:
        if self.ticket is not None:
            self.ticket = None
            self.phase = "join"

    @property
    def is_settled(self) -> bool:
        return self.phase == "stable"

    def tick(self) -> None:
        if self.ticket is not None:
            answer = self.world.take_answer(self.ticket)
            if answer is None:
                return
            self.ticket = None
            if self.phase == "joining":
                self._joined(answer)
            else:
                self._synced(answer)
        elif self.phase in ("out", "join"):
            self._join()
        else:
            self._heartbeat()

    # --- the phases

    def _join(self) -> None:
        if not self.is_cooperative:
            self.owned = {}
        metadata = write_subscription(self.topics, owned=self.owned)
        self.ticket = self.world.desk.send_join(
            self.member_id,
            instance=self.instance,
            protocols=[(self.protocol, metadata)],
            version=self.version,
            session_ms=10_000,
            rebalance_ms=20_000,
            client_id=self.name,
        )
        self.phase = "joining"
        self.say(f"joins as {self.member_id or '?'} owning {self.owned}")

    def _joined(self, answer: Any) -> None:
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.phase = "join"
        elif error is not ErrorCode.NONE:
            self._refused(error)
        else:
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            assignments: Mapping[str, bytes] = {}
            self.assigned_for = None
            if answer.leader == self.member_id:
                self.assigned_for = {}
                if not answer.skip_assignment:
                    self.assigned_for = dict(self.world.desk.topics)
                    assignments = self._assign(answer.members)
            self.ticket = self.world.desk.send_sync(
                self.member_id, self.epoch, assignments, instance=self.instance, protocol_name=answer.protocol_name
            )
            self.phase = "syncing"
            self.say(f"is in generation {self.epoch} as {self.member_id}{' and leads' if assignments else ''}")

    def _assign(self, members: Sequence[Any]) -> dict[str, bytes]:
        """Round robin; a cooperative leader gives nothing to one member that another still has."""
        subscriptions = {one.member_id: consumer_protocol.read_subscription(one.metadata) for one in members}
        holder = {
            (topic, partition): member
            for member, one in subscriptions.items()
            for topic, partitions in one.owned
            for partition in partitions
        }
        shares: dict[str, Owned] = {member: {} for member in subscriptions}
        number = 0
        for topic, count in sorted(self.world.desk.topics.items()):
            readers = sorted(member for member, one in subscriptions.items() if topic in one.topics)
            for partition in range(count if readers else 0):
                member = readers[number % len(readers)]
                number += 1
                if holder.get((topic, partition), member) == member:
                    shares[member].setdefault(topic, []).append(partition)
        return {member: consumer_protocol.write_assignment(share, 1) for member, share in shares.items()}

    def _synced(self, answer: Any) -> None:
        error = ErrorCode(answer.error_code)
        if error is not ErrorCode.NONE:
            self._refused(error)
            return
        given: Owned = {}
        if answer.assignment:
            for one in consumer_protocol.read_assignment(answer.assignment).assigned_partitions:
                if one.topic in self.world.desk.topics:  # else it has gone while the answer was on its way
                    given[one.topic] = list(one.partitions)
        has_lost = any(
            one not in given.get(topic, []) for topic, partitions in self.owned.items() for one in partitions
        )
        self.owned = given
        # A cooperative consumer that has given something up joins again at once, so that others can have it.
        self.phase = "join" if self.is_cooperative and has_lost else "stable"
        self.say(f"owns {self.owned}")

    def _heartbeat(self) -> None:
        try:
            error = self.world.desk.heartbeat(self.member_id, self.epoch, instance=self.instance)
        except NotAnswered:
            return
        if error is not ErrorCode.NONE:
            self._refused(error)
        elif self.assigned_for is not None and self.assigned_for != self.world.desk.topics:
            self.say("leads and has seen topics change")
            self.phase = "join"

    def _refused(self, error: ErrorCode) -> None:
        self.say(f"is told {error.name}")
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        elif error is ErrorCode.FENCED_INSTANCE_ID:
            self.lose_everything()
            self.is_alive = False
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.lose_everything()
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            self.epoch = -1
        else:
            assert error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE), error
        self.phase = "join"

    def leave(self) -> None:
        self.lose_everything()
        if self.member_id and self.instance is None:
            try:
                self.world.desk.leave((self.member_id, None))
            except ApiError as error:
                assert error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NOT_COORDINATOR), error
            except NotAnswered:
                pass


class ConsumerClient(SimClient):
    kind = "consumer"

    def __init__(
        self, world: World, name: str, topics: Sequence[str], instance: str | None, *, regex: str | None = None
    ) -> None:
        super().__init__(world, name, topics, instance)
        self.regex = regex
        self.member_id = f"{name}-{world.next_number()}"
        self.epoch = 0
        self.target: Owned | None = None
        self.must_tell_all = True
        self.has_news = False

    @property
    def is_settled(self) -> bool:
        return self.epoch > 0 and self.target is None and not self.has_news

    def lose_everything(self) -> None:
        self.owned = {}
        self.target = None

    def topic_is_gone(self, topic: str) -> None:
        super().topic_is_gone(topic)
        if self.target is not None:
            self.target.pop(topic, None)

    def on_coordinator_restart(self) -> None:
        self.must_tell_all = True

    def tick(self) -> None:
        self._work_on_target()
        is_join = self.epoch == 0
        is_full = is_join or self.must_tell_all
        options: dict[str, Any] = {"instance": self.instance}
        if is_full:
            options.update(topics=self.topics if self.regex is None else None, regex=self.regex, rebalance_ms=20_000)
        if is_full or self.has_news or self.world.chance(0.3):
            options["owned"] = {} if is_join else self.owned
        try:
            answer = self.world.desk.beat(self.member_id, self.epoch, **options)
        except ApiError as error:
            self.must_tell_all = True
            self._refused(error.code)
            return
        except NotAnswered:
            self.must_tell_all = True
            return
        if self.world.chance(self.world.loss):
            self.say("does not get the answer")
            self.must_tell_all = True
            return
        self.must_tell_all = False
        self.has_news = False
        if answer.member_epoch != self.epoch:
            self.say(f"is in epoch {answer.member_epoch}")
        self.epoch = answer.member_epoch
        group = self.world.desk.state.consumer(GROUP)
        assert group is not None and self.epoch <= group.epoch
        if answer.assignment is not None:
            names = {bytes(topic_id(name)): name for name in self.world.names_ever}
            self.target = {
                names[bytes(one.topic_id)]: list(one.partitions) for one in answer.assignment.topic_partitions
            }
            self.say(f"is to own {self.target}")

    def _work_on_target(self) -> None:
        """First let go, which may take a while; then take what is new."""
        if self.target is None:
            return
        kept = {
            topic: [one for one in partitions if one in self.target.get(topic, [])]
            for topic, partitions in self.owned.items()
        }
        kept = {topic: partitions for topic, partitions in kept.items() if partitions}
        if kept != self.owned and self.world.chance(0.3):
            return  # still busy with a record of a partition it has to give up
        self.owned = {topic: list(partitions) for topic, partitions in self.target.items()}
        self.target = None
        self.has_news = True
        self.say(f"owns {self.owned}")

    def _refused(self, error: ErrorCode) -> None:
        self.say(f"is told {error.name}")
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self.lose_everything()
            self.is_alive = False
        elif error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            self.lose_everything()
            self.epoch = 0
            self.must_tell_all = True
        else:
            assert error in (ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.NOT_COORDINATOR), error

    def leave(self) -> None:
        self.lose_everything()
        if self.epoch <= 0:
            return
        try:
            self.world.desk.beat(self.member_id, -1 if self.instance is None else -2, instance=self.instance)
        except ApiError as error:
            assert error.code in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.NOT_COORDINATOR,
            ), error
        except NotAnswered:
            pass
