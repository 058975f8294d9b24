"""Several workers of one group: they share connectors, anybody may be asked, and what a dead one ran moves."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.connect.conftest import MakeConnect
from tests.connect.test_connectors import eventually


def owners(connect: Any) -> dict[str, str]:
    _, answer = connect.ask("GET", "/connectors?expand=status")
    return {
        name: row["status"]["connector"]["worker_id"]
        for name, row in answer.items()
        if row["status"]["connector"]["state"] == "RUNNING"
    }


def test_connectors_are_shared_out_forwarded_and_moved(broker: Any, make_connect: MakeConnect, tmp_path: Path) -> None:
    settings = {"group.id": "shared"} | {
        f"{one}.storage.topic": f"shared-{one}" for one in ("config", "offset", "status")
    }
    first = make_connect(broker.bootstrap_servers, **settings)
    second = make_connect(broker.bootstrap_servers, **settings)
    names = [f"lines-{number}" for number in range(4)]
    for number, name in enumerate(names):
        (tmp_path / name).write_text("one\n")
        # Whoever is asked, the leader writes.
        asked = (first, second)[number % 2]
        asked.create(name, connector_class="FileStreamSource", file=tmp_path / name, topic="shared-lines")
    found = eventually(lambda: owners(second), lambda seen: len(seen) == 4 and len(set(seen.values())) == 2)
    assert sorted(list(found.values()).count(worker) for worker in set(found.values())) == [2, 2]
    assert len(broker.records("shared-lines", count=4, timeout_s=120)) == 4

    second.stop()
    eventually(lambda: owners(first), lambda seen: len(seen) == 4 and len(set(seen.values())) == 1)
    for name in names:
        with (tmp_path / name).open("a") as file:
            file.write("two\n")
    records = broker.records("shared-lines", count=8, timeout_s=120)
    time.sleep(0.5)
    assert sorted(record.value for record in broker.records("shared-lines", count=8)) == [b"one"] * 4 + [b"two"] * 4
    assert len(records) == 8
