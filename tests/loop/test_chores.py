"""Nobody stalls the loop: chores on a large log directory."""

from __future__ import annotations

import pytest

from ottla.testing import Broker
from tests.support.loop_turns import TURN_S_MAX, LoopTurns

PARTITIONS = 10_000


@pytest.mark.slow
def test_no_chore_over_ten_thousand_logs_is_one_long_turn() -> None:
    with LoopTurns() as turns, Broker({"log.cleaner.backoff.ms": "1000000000"}) as broker:
        running = broker.server.broker
        broker.create_topic("wide", PARTITIONS)
        chores = {
            "retention": running._retain,
            "checkpoint": running._checkpoint,
            "flush": running._flush,
            "compaction": running.cleaning.tick,
        }
        too_long = {}
        for name, chore in chores.items():
            for _ in range(5):
                turns.reset()
                broker.run(chore())
                if turns.worst_s < TURN_S_MAX:
                    break
            else:
                too_long[name] = turns.worst
            print(name, turns.worst)
        assert not too_long
