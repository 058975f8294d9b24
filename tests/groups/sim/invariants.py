"""What must hold after every event, whatever the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.groups.classic_group import ClassicGroup, State
from ottla.groups.consumer_group import ConsumerGroup
from ottla.groups.state import GroupState
from tests.groups.desk import topic_id
from tests.groups.sim.clients import GROUP, SimClient

if TYPE_CHECKING:
    from tests.groups.sim.world import World


def check(world: World) -> None:
    group = world.desk.state.groups.get(GROUP)
    if isinstance(group, ConsumerGroup):
        _no_partition_is_booked_twice(group)
        _clients_own_what_is_booked_on_them(world, group)
    elif isinstance(group, ClassicGroup):
        _no_partition_has_two_owners_in_one_generation(world, group)
        _counters_add_up(group)
    _replay_gives_the_same(world)
    _acknowledged_commits_are_there(world)


def _no_partition_is_booked_twice(group: ConsumerGroup) -> None:
    seen: dict[tuple[bytes, int], str] = {}
    for member in group.members.values():
        for held in (member.assigned, member.revoking):
            for topic, partitions in held.items():
                for partition in partitions:
                    other = seen.setdefault((topic, partition), member.member_id)
                    assert other == member.member_id, f"{topic!r}-{partition} is {other}'s and {member.member_id}'s"
                    assert group.owner(topic, partition) == member.member_id
    targets: dict[tuple[bytes, int], str] = {}
    for member_id, target in group.targets.items():
        for topic, partitions in target.items():
            for partition in partitions:
                other = targets.setdefault((topic, partition), member_id)
                assert other == member_id, f"{topic!r}-{partition} is meant for {other} and {member_id}"


def _clients_own_what_is_booked_on_them(world: World, group: ConsumerGroup) -> None:
    """So no two members read one partition, because none is booked on two."""
    for client in world.clients:
        member = group.members.get(client.member_id)
        if member is None or not client.is_alive:
            continue
        for topic, partitions in client.owned.items():
            for partition in partitions:
                is_booked = member.owned_since(topic_id(topic), partition) is not None
                assert is_booked, f"{client.name} reads {topic}-{partition} that is not booked on it"


def _no_partition_has_two_owners_in_one_generation(world: World, group: ClassicGroup) -> None:
    seen: dict[tuple[str, int], SimClient] = {}
    for client in world.clients:
        if client.is_alive and client.member_id in group.members and client.epoch == group.generation:
            for topic, partitions in client.owned.items():
                for partition in partitions:
                    other = seen.setdefault((topic, partition), client)
                    assert other is client, f"{topic}-{partition} is read by {other.name} and {client.name}"


def _counters_add_up(group: ClassicGroup) -> None:
    assert group.awaiting_join == sum(1 for one in group.members.values() if one.join_ticket is not None)
    assert all(group.members[member_id].instance_id == one for one, member_id in group.static_ids.items())
    assert all(one in group.members for one in group.unsynced)
    assert group.is_empty <= (not group.members)


def _replay_gives_the_same(world: World) -> None:
    mirror = world.mirror()
    live = world.desk.state
    assert durable_offsets(live) == durable_offsets(mirror)
    for group_id, group in live.groups.items():
        other = mirror.groups.get(group_id)
        assert type(other) is type(group), f"{group_id} is {group.type_name}, replay makes {other}"
        if isinstance(group, ConsumerGroup):
            assert durable_consumer(group) == durable_consumer(other)
        elif group.state is State.STABLE or (group.is_empty and not world.desk.log.has_lost):
            assert durable_classic(group) == durable_classic(other)
        else:
            # A generation is not durable before its assignment is. That everybody has left may get lost on a disk that
            # fails; then the members that a restart finds time out.
            assert isinstance(other, ClassicGroup)
            assert other.generation <= group.generation
    assert set(mirror.groups) == set(live.groups)


def durable_offsets(state: GroupState) -> Any:
    return state.offsets.by_group, state.offsets.pending


def durable_consumer(group: Any) -> Any:
    return (
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assignment_timestamp_ms,
        group.members,
        group.targets,
        group.regexes,
        group.static_ids,
    )


def durable_classic(group: Any) -> Any:
    members = {
        one.member_id: (one.instance_id, one.assignment, one.metadata(group.protocol), one.session_timeout_ms)
        for one in group.members.values()
    }
    return group.state, group.generation, group.protocol, members, group.static_ids


def _acknowledged_commits_are_there(world: World) -> None:
    for (topic, partition), allowed in world.commits.items():
        found = world.desk.committed(topic=topic, partition=partition)
        assert found in allowed, f"{topic}-{partition}: {found} is not one of {allowed}"
