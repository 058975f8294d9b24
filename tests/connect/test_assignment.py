"""Who runs which connector: each exactly once, evenly, and never moved before it is stopped."""

from __future__ import annotations

import random

from ottla.connect.worker.assignment import Share, Told, shares


def test_what_members_tell_and_are_told_survives_the_wire() -> None:
    told = Told("http://a:1", ("x", "ü"))
    assert Told.decode(told.encode()) == told
    share = Share("http://a:1", ("x",))
    assert Share.decode(share.encode()) == share


def test_a_connector_stays_where_it_runs() -> None:
    members = {"m1": Told("http://a", ("x", "y")), "m2": Told("http://b", ())}
    assert shares(members, ["x"]) == {"m1": ("x",), "m2": ()}


def test_one_that_has_to_move_is_first_given_to_nobody() -> None:
    members = {"m1": Told("http://a", ("x", "y")), "m2": Told("http://b", ())}
    assert shares(members, ["x", "y"]) == {"m1": ("x",), "m2": ()}
    stopped = {"m1": Told("http://a", ("x",)), "m2": Told("http://b", ())}
    assert shares(stopped, ["x", "y"]) == {"m1": ("x",), "m2": ("y",)}


def test_members_come_to_an_even_share_and_nothing_ever_runs_twice() -> None:
    chance = random.Random(18)
    for _ in range(300):
        members = {f"m{number}": Told(f"http://{number}", ()) for number in range(chance.randint(1, 5))}
        wanted = [f"c{number}" for number in range(chance.randint(0, 12))]
        for _ in range(6):
            if chance.random() < 0.4:
                members[f"m{chance.randint(5, 9)}"] = Told(f"http://{chance.randint(5, 9)}", ())
            if chance.random() < 0.4 and len(members) > 1:
                members.pop(chance.choice(sorted(members)))
            for _ in range(4):
                given = shares(members, wanted)
                # A worker runs what it ran and may keep, until the next generation.
                running = {
                    member: {*told.running} & {*given[member]} | {*given[member]} for member, told in members.items()
                }
                everything = [name for names in running.values() for name in names]
                assert len(everything) == len(set(everything))
                for member, names in given.items():
                    for name in names:
                        holders = [other for other, told in members.items() if name in told.running]
                        assert not holders or member in holders, "it was moved before it was stopped"
                members = {member: Told(told.url, given[member]) for member, told in members.items()}
            counts = [len(told.running) for told in members.values()]
            assert sorted(name for told in members.values() for name in told.running) == sorted(wanted)
            assert max(counts) - min(counts) <= 1 or max(counts) <= -(-len(wanted) // len(members))
