"""The server-side assignors, on random groups: complete, exclusive, fair, sticky, repeatable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.common.ids import TopicId
from ottla.groups.assignors import Assignor, GroupSpec, MemberSpec, Partitions, assignor_named, tidy

UNIFORM = assignor_named("uniform")
RANGE = assignor_named("range")


def topic(number: int) -> TopicId:
    return TopicId(bytes([number]) * 16)


def run(assignor: Assignor, spec: GroupSpec) -> dict[str, Partitions]:
    return tidy(assignor(spec))


def spec_of(
    members: dict[str, tuple[TopicId, ...]], counts: dict[TopicId, int], current: dict[str, Partitions] | None = None
) -> GroupSpec:
    return GroupSpec({one: MemberSpec(topics, (current or {}).get(one, {})) for one, topics in members.items()}, counts)


def owners(target: dict[str, Partitions]) -> dict[tuple[TopicId, int], list[str]]:
    found: dict[tuple[TopicId, int], list[str]] = {}
    for member, topics in target.items():
        for topic_id, partitions in topics.items():
            for partition in partitions:
                found.setdefault((topic_id, partition), []).append(member)
    return found


def sizes(target: dict[str, Partitions]) -> dict[str, int]:
    return {member: sum(len(one) for one in topics.values()) for member, topics in target.items()}


@st.composite
def groups(draw: st.DrawFn, alike: bool = False) -> GroupSpec:
    counts = {topic(number): draw(st.integers(0, 7)) for number in range(1, draw(st.integers(1, 4)) + 1)}
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True))
    every = tuple(counts)
    if alike:
        members = dict.fromkeys(names, every)
    else:
        members = {name: tuple(draw(st.lists(st.sampled_from(every), unique=True))) for name in names}
    return spec_of(members, counts)


def check_complete(spec: GroupSpec, target: dict[str, Partitions]) -> None:
    found = owners(target)
    assert all(len(one) == 1 for one in found.values()), "a partition has two owners"
    for member, topics in target.items():
        assert set(topics) <= set(spec.members[member].topics), "a member got what it does not read"
    read = {one for member in spec.members.values() for one in member.topics}
    assert set(found) == {(one, number) for one in read for number in range(spec.partition_counts[one])}


@given(groups())
def test_uniform_gives_each_partition_that_is_read_to_one_reader(spec: GroupSpec) -> None:
    check_complete(spec, run(UNIFORM, spec))


@given(groups())
def test_range_gives_each_partition_that_is_read_to_one_reader(spec: GroupSpec) -> None:
    check_complete(spec, run(RANGE, spec))


@given(groups(alike=True))
def test_uniform_is_fair_when_all_read_the_same(spec: GroupSpec) -> None:
    loads = sizes(run(UNIFORM, spec)).values()
    assert max(loads) - min(loads) <= 1


@given(groups())
def test_uniform_leaves_no_single_move_that_would_be_fairer(spec: GroupSpec) -> None:
    target = run(UNIFORM, spec)
    loads = sizes(target)
    for (topic_id, _), (owner,) in owners(target).items():
        for name, member in spec.members.items():
            if topic_id in member.topics:
                assert loads[owner] <= loads[name] + 1


@given(groups())
def test_nothing_moves_when_nothing_has_changed(spec: GroupSpec) -> None:
    for assignor in (UNIFORM, RANGE):
        first = run(assignor, spec)
        again = GroupSpec(
            {name: MemberSpec(one.topics, first[name]) for name, one in spec.members.items()}, spec.partition_counts
        )
        assert run(assignor, again) == first


@given(groups(alike=True))
def test_uniform_moves_no_more_than_it_must_when_somebody_joins(spec: GroupSpec) -> None:
    before = run(UNIFORM, spec)
    every = tuple(spec.partition_counts)
    members = {name: MemberSpec(every, before[name]) for name in spec.members} | {"new": MemberSpec(every, {})}
    after = run(UNIFORM, GroupSpec(members, spec.partition_counts))
    was, now = owners(before), owners(after)
    moved = [one for one in now if was[one] != now[one]]
    assert len(moved) == sizes(after)["new"], "only the newcomer gets something"


@given(groups(alike=True))
def test_uniform_moves_only_what_was_left_behind_when_somebody_leaves(spec: GroupSpec) -> None:
    before = run(UNIFORM, spec)
    gone = sorted(spec.members)[0]
    every = tuple(spec.partition_counts)
    members = {name: MemberSpec(every, before[name]) for name in spec.members if name != gone}
    if members:
        was, now = owners(before), owners(run(UNIFORM, GroupSpec(members, spec.partition_counts)))
        assert all(was[one] == [gone] for one in now if was[one] != now[one])


def test_current_assignments_that_overlap_are_sorted_out() -> None:
    both = {topic(1): (0, 1, 2, 9)}
    spec = spec_of({"a": (topic(1),), "b": (topic(1),)}, {topic(1): 4}, {"a": both, "b": both})
    check_complete(spec, run(UNIFORM, spec))


def test_range_puts_equal_topics_side_by_side() -> None:
    spec = spec_of({"a": (topic(1), topic(2)), "b": (topic(1), topic(2))}, {topic(1): 3, topic(2): 3})
    assert run(RANGE, spec) == {
        "a": {topic(1): (0, 1), topic(2): (0, 1)},
        "b": {topic(1): (2,), topic(2): (2,)},
    }


def test_range_puts_a_newcomer_at_the_end() -> None:
    current = {"m": {topic(1): (0, 1, 2)}, "n": {topic(1): (3, 4, 5)}}
    spec = spec_of({"a": (topic(1),), "m": (topic(1),), "n": (topic(1),)}, {topic(1): 6}, current)
    assert run(RANGE, spec) == {"a": {topic(1): (4, 5)}, "m": {topic(1): (0, 1)}, "n": {topic(1): (2, 3)}}


def test_nobody_gets_nothing() -> None:
    for assignor in (UNIFORM, RANGE):
        assert run(assignor, spec_of({}, {})) == {}
        assert run(assignor, spec_of({"a": ()}, {})) == {"a": {}}
