"""A seed becomes a history; a failure becomes the shortest transcript that a little patience finds.

python -m tests.storage.model.run 17 18 19        these seeds
python -m tests.storage.model.run 0..20000        all of them
"""

from __future__ import annotations

import logging
import random
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from unittest import mock

from tests.storage.model.actions import Actions

# How often each happens.
WEIGHTS = {
    "append_plain": 10,
    "append_idempotent": 6,
    "append_transactional": 14,
    "end_transaction": 10,
    "retry": 3,
    "roll": 4,
    "flush": 3,
    "checkpoint": 4,
    "pass_time": 3,
    "release_idle": 1,
    "delete_records": 1,
    "retention": 2,
    "compact": 8,
    "restart": 2,
    "power_off": 1,
    "kill": 3,
    "power_cut": 2,
}
# An action in the middle of which the process may die, and how often.
CRASHING = (
    "append_plain",
    "append_transactional",
    "end_transaction",
    "roll",
    "flush",
    "checkpoint",
    "retention",
    "compact",
    "restart",
)
CRASH_CHANCE = 0.06
STEPS = 40

# Name of an action, whether to die in the middle of it, and the seed of its choices: its own, so that a history can be
# shortened without changing what is left.
Step = tuple[str, bool, int]


class ModelFailed(AssertionError):
    pass


def steps_of(seed: int, count: int = STEPS) -> list[Step]:
    rng = random.Random(seed)
    names = rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count)
    return [(name, name in CRASHING and rng.random() < CRASH_CHANCE, rng.randrange(1 << 32)) for name in names]


def play(seed: int, steps: list[Step]) -> str | None:
    """None when log and model agree all the way, else what happened."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-model-", dir=_fast_folder()))
    subject = None
    logging.disable(logging.CRITICAL)  # what recovery says of cuts
    small_snapshots = mock.patch("ottla.storage.log._SNAPSHOT_BYTES", 300)
    small_snapshots.start()
    try:
        subject = Actions(folder, random.Random(seed))
        for name, dies, choices in steps:
            rng = random.Random(choices)
            action = getattr(subject, name)
            if dies:
                subject.crash_during(action, rng)
            else:
                action(rng)
            subject.check(rng)
    except Exception as error:
        lines = [f"seed {seed}"]
        if subject is not None:
            lines += [f"  {name} = {value}" for name, value in subject.settings.items()]
            lines += [f"  {line}" for line in subject.transcript]
        return "\n".join([*lines, *traceback.format_exception(error)])
    finally:
        small_snapshots.stop()
        logging.disable(logging.NOTSET)
        shutil.rmtree(folder)
    return None


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def shorten(seed: int, steps: list[Step]) -> str:
    """Leave out what the failure does not need."""
    failure = play(seed, steps)
    assert failure is not None
    size = len(steps) // 2
    while size:
        start = 0
        while start < len(steps):
            fewer = steps[:start] + steps[start + size :]
            shorter = play(seed, fewer)
            if shorter is None:
                start += size
            else:
                steps, failure = fewer, shorter
        size //= 2
    return failure


def check_seed(seed: int) -> None:
    """Raises ModelFailed with a transcript."""
    steps = steps_of(seed)
    if play(seed, steps) is not None:
        raise ModelFailed(shorten(seed, steps))


def main(arguments: list[str]) -> int:
    failures = 0
    for argument in arguments:
        first, _, end = argument.partition("..")
        for seed in range(int(first), int(end) if end else int(first) + 1):
            try:
                check_seed(seed)
            except ModelFailed as error:
                failures += 1
                print(error, flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
