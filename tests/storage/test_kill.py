"""kill -9 in the middle of appends, again and again: whatever was answered is there, once and in order."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from ottla.storage.log_config import LogConfig
from tests.storage.batches import open_log, read_all

CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=500)
REPO_ROOT = Path(__file__).parents[2]

# Appends numbered records of an idempotent producer, and says so after each one. It begins with the last number that
# was answered, which must be taken for a duplicate.
WRITER = """
import sys
from pathlib import Path
from tests.storage.batches import batch, open_log, NOW_MS
from tests.storage.test_kill import CONFIG
log = open_log(Path(sys.argv[1]), CONFIG)
number = int(sys.argv[2])
while True:
    data = batch(b"%d" % number, producer_id=7, producer_epoch=0, base_sequence=number)
    log.append(data, leader_epoch=0, now_ms=NOW_MS)
    print(number, flush=True)
    number += 1
"""


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    chance = random.Random(4)
    directory = tmp_path / "orders-0"
    answered = -1
    for _ in range(6):
        command = [sys.executable, "-c", WRITER, str(directory), str(max(answered, 0))]
        environment = {"PYTHONPATH": f"{REPO_ROOT}/src:{REPO_ROOT}"}
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPO_ROOT, env=environment)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        assert first, "the writer did not start"
        time.sleep(chance.uniform(0.01, 0.15))
        writer.send_signal(signal.SIGKILL)
        # The last line may be cut.
        lines = [line for line in (first + writer.stdout.read()).splitlines(keepends=True) if line.endswith("\n")]
        writer.wait()
        answered = int(lines[-1])
        log = open_log(directory, CONFIG)
        assert not log.damage
        numbers = [int(value or b"-1") for _, value in read_all(log)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > answered
