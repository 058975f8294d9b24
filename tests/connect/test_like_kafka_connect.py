"""The same conversation with our worker as with Kafka Connect 4.3.1, whose answers are recorded: field by field.

What may differ is named here: which connectors there are, what versions they have, and sentences that list Java's
classes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.connect.conversation import converse

RECORDED = json.loads((Path(__file__).parent / "recorded" / "conversation.json").read_text())
# Steps whose answers are ours to give.
OURS = {
    "GET /": "version, commit and the id of the cluster are others",
    "GET /connector-plugins": "other connectors",
    "GET /connector-plugins?connectorsOnly=false": "other connectors; transforms and the like are compared below",
    "PUT /connector-plugins/NoSuchThing/config/validate": "Kafka answers 500 to a name that does not exist, we 404",
    "GET /admin/loggers/root": "Java's root logger begins at ERROR",
}
# Of a level that was set: ours are Python's loggers.
_VERSION = re.compile(r'"(4\.3\.1|1\.0)"')


def comparable(told: dict[str, Any]) -> Any:
    tree = {name: value for name, value in told.items() if name != "body"}
    text = _VERSION.sub('"VERSION"', json.dumps(tree, sort_keys=True))
    text = re.sub(r"(available connectors are: ).*?\"", r'\1..."', text)
    text = re.sub(r'"task.class": "[^"]*"', '"task.class": "..."', text)
    if told["step"] == "GET /connectors/snk/offsets":
        # Kafka commits the offset after the last record, we what lies behind it too: the mark of its transaction.
        text = text.replace('"kafka_offset": 4', '"kafka_offset": 3')
    # Converters that come with Confluent's registry, and with ours.
    text = re.sub(r'"io\.confluent\.[^"]*", ', "", text)
    tree = json.loads(text)
    if "expand=info" in told["step"]:
        # Kafka's tasks of a connector that was just changed may still be on their way.
        for row in tree["answer"].values():
            row.pop("status")
    return tree


def test_every_answer_has_the_fields_and_values_of_kafka_connect(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    different = []
    plugins: dict[str, Any] = {}
    for (step, told), recorded in zip(converse(connect.url, str(tmp_path)), RECORDED, strict=True):
        assert step.name == recorded["step"]
        if step.name.endswith("connectorsOnly=false"):
            plugins = {"ours": told["answer"], "Kafka": recorded["answer"]}
        if step.name in OURS:
            continue
        if comparable(told) != comparable(recorded):
            different.append((comparable(told), comparable(recorded)))
    shown = "\n\n".join(f"ours  {ours}\nKafka {theirs}" for ours, theirs in different)
    assert not different, shown
    ours, kafkas = (
        {(row["class"], row["type"]) for row in plugins[whose] if row["type"] not in ("source", "sink")}
        for whose in ("ours", "Kafka")
    )
    assert kafkas <= ours
