"""The programs of `streams_programs.py` in quix-streams, run by its own Python: exactly once, with its state store.

    python quix_application.py PROGRAM BOOTSTRAP GROUP SOURCE TARGET STATE_FOLDER

Ends when its standard input does. One process has one core: the benchmark starts two of them in a group. Commits come
every second, not every five: else the end of a measurement would be blurred by five.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from quixstreams import Application  # type: ignore[import-not-found,unused-ignore]

COMMIT_S = 1.0
TEXT = {"key_serializer": "string", "value_serializer": "string"}
FROM_TEXT = {"key_deserializer": "string", "value_deserializer": "string"}


def counted(value: Any, state: Any) -> str:
    count = state.get("count", 0) + 1
    state.set("count", count)
    return str(count)


def build(program: str, frame: Any) -> Any:
    if program == "words":
        words = frame.apply(str.split, expand=True)
        return words.group_by(lambda word: word, name="words", **TEXT, **FROM_TEXT).apply(counted, stateful=True)
    if program == "windows":
        counts = frame.tumbling_window(10_000, grace_ms=10_000).count().current()
        return counts.apply(lambda window: f"{window['start']} {window['value']}")
    if program == "counts":
        return frame.apply(counted, stateful=True)
    raise ValueError(f"no program is called {program}")


def end_with_input() -> None:
    while sys.stdin.read(1):
        pass
    os._exit(0)


def main() -> None:
    program, bootstrap, group, source, target, folder = sys.argv[1:]
    application = Application(
        bootstrap,
        consumer_group=group,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=COMMIT_S,
        state_dir=folder,
        loglevel="WARNING",
    )
    frame = application.dataframe(application.topic(source, **FROM_TEXT))
    build(program, frame).to_topic(application.topic(target, **TEXT))
    threading.Thread(target=end_with_input, daemon=True).start()
    application.run()


if __name__ == "__main__":
    main()
