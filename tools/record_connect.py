"""Records what Kafka Connect answers in the conversation of tests/connect, once: `python tools/record_connect.py`.

It takes Kafka's jars (`python tools/fetch_jars.py kafka`) and a few minutes. A broker of ours holds the topics.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.connect.conversation import converse  # noqa: E402
from tests.support.brokers import OttlaProcess  # noqa: E402
from tests.support.connect_processes import KafkaConnect  # noqa: E402

RECORDED = ROOT / "tests" / "connect" / "recorded" / "conversation.json"


def main() -> None:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "in.txt").write_text("one\ntwo\nthree\n")
        broker = OttlaProcess(folder / "broker", {"group.initial.rebalance.delay.ms": "0"}).start()
        connect = KafkaConnect(broker.bootstrap, folder)
        try:
            connect.start()
            told = [answer for _, answer in converse(connect.url, str(folder))]
        finally:
            connect.close()
            broker.close()
        RECORDED.write_text(json.dumps(told, indent=1) + "\n")
        print(f"{len(told)} answers in {RECORDED.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
