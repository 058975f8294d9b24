"""The worker process: heavy work on segment files, away from the broker's event loop. `python -m ottla.storage.worker`

It reads one JSON object a line from stdin, `{"job": "compact", ...}`, and answers each with lines on stdout: any number
of `{"group": ...}` and at the end `{"done": ...}` or `{"error": kind, "message": ...}`. It runs at low priority, one
job at a time, and ends when stdin does: a broker that is killed takes its worker with it, in the middle of whatever it
does. What it leaves then are `.cleaned` files, which the next start removes.
"""

from __future__ import annotations

import errno
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ottla.records.record import CorruptRecords
from ottla.storage.compaction.cleaned_segment import SegmentTooLarge
from ottla.storage.compaction.compactor import CorruptSegment, compact
from ottla.storage.compaction.job import DAMAGED, DISK, GONE, UNEXPECTED, CompactionJob

NICENESS = 10

Send = Callable[[dict[str, Any]], None]


def run_job(values: dict[str, Any], send: Send) -> None:
    """Do what one line asks and send the answers; never raises for what is wrong with a log."""
    try:
        if values.pop("job") != "compact":
            raise ValueError("no such job")
        job = CompactionJob.from_json(values)
        result = compact(job, lambda group: send({"group": asdict(group)}))
        send({"done": asdict(result)})
    except (CorruptSegment, CorruptRecords, SegmentTooLarge) as error:
        send({"error": DAMAGED, "message": str(error)})
    except OSError as error:
        kind = GONE if error.errno in (errno.ENOENT, errno.ENOTDIR) else DISK
        send({"error": kind, "message": str(error)})
    except Exception as error:
        send({"error": UNEXPECTED, "message": f"{type(error).__name__}: {error}"})


def _read_jobs(jobs: queue.SimpleQueue[dict[str, Any]]) -> None:
    """In a thread of its own, so that the end of stdin is seen also in the middle of a job."""
    for line in sys.stdin.buffer:
        jobs.put(json.loads(line))
    os._exit(0)


def _send(message: dict[str, Any]) -> None:
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)


def main() -> None:
    # Ctrl-C goes to the whole group of processes; the broker decides when its worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    while True:
        run_job(jobs.get(), _send)


if __name__ == "__main__":
    main()
