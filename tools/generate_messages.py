"""Write `src/ottla/protocol/messages.json` and its typed stub from Kafka's own message definitions.

Kafka's jars carry the definitions as resources (`common/message/*.json`). We keep the facts a codec needs
(field names, types, version ranges, defaults, tags), one message a line, and none of the prose. Run it again
when a newer Kafka adds versions:

    python tools/generate_messages.py LIBS_FOLDER_WITH_KAFKA_JARS
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "src" / "ottla" / "protocol"
JARS = (
    "kafka-clients-*.jar",
    "kafka-group-coordinator-[0-9]*.jar",
    "kafka-transaction-coordinator-*.jar",
    "kafka-share-coordinator-*.jar",
)
PYTHON_TYPES = {
    "bool": "bool",
    "string": "str",
    "bytes": "bytes",
    "records": "memoryview | bytes",
    "uuid": "bytes",
    "float64": "float",
}


def snake(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


def field_facts(field: dict[str, Any], structs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": snake(field["name"]),
        "type": field["type"],
        "versions": field.get("versions", "0+"),
    }
    if "nullableVersions" in field:
        facts["nullable"] = field["nullableVersions"]
    if "tag" in field:
        facts["tag"] = field["tag"]
        facts["tagged"] = field["taggedVersions"]
    if "default" in field:
        # Kafka's definitions write a default of null in two ways.
        facts["default"] = "null" if field["default"] is None else field["default"]
    if field.get("flexibleVersions") == "none":
        facts["inflexible"] = True
    inner = field.get("fields") or structs.get(field["type"].removeprefix("[]"))
    if inner:
        facts["fields"] = [field_facts(one, structs) for one in inner]
    return facts


def message_facts(definition: dict[str, Any]) -> dict[str, Any]:
    structs = {one["name"]: one["fields"] for one in definition.get("commonStructs", [])}
    facts: dict[str, Any] = {"name": definition["name"]}
    key = definition.get("apiKey")
    if key is not None:
        facts["key"] = key
    facts["kind"] = definition["type"]
    facts["versions"] = definition["validVersions"]
    facts["flexible"] = definition["flexibleVersions"]
    facts["fields"] = [field_facts(one, structs) for one in definition["fields"]]
    return facts


def annotation(field: dict[str, Any], owner: str) -> str:
    kind = field["type"]
    base = kind.removeprefix("[]")
    inner = PYTHON_TYPES.get(base) or ("int" if base.startswith(("int", "uint")) else f"{owner}.{base}")
    text = f"Sequence[{inner}]" if kind.startswith("[]") else inner
    return f"{text} | None" if "nullable" in field or field.get("default") == "null" else text


def stub_class(name: str, fields: list[dict[str, Any]], owner: str, indent: str) -> list[str]:
    lines = [f"{indent}class {name}(Message):"]
    inner = indent + "    "
    for field in fields:
        if "fields" in field:
            lines += stub_class(field["type"].removeprefix("[]"), field["fields"], owner, inner)
    for field in fields:
        lines.append(f"{inner}{field['name']}: {annotation(field, owner)}")
    arguments = ", ".join(f"{one['name']}: {annotation(one, owner)} = ..." for one in fields)
    lines.append(f"{inner}def __init__(self{', *, ' + arguments if arguments else ''}) -> None: ...")
    return lines


def flatten(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every struct of a message sits directly in the message's class, however deep it is nested."""
    seen: dict[str, dict[str, Any]] = {}

    def visit(inner: list[dict[str, Any]]) -> None:
        for field in inner:
            if "fields" in field:
                visit(field["fields"])
                seen.setdefault(field["type"].removeprefix("[]"), field)

    visit(fields)
    return list(seen.values())


def stub(messages: list[dict[str, Any]]) -> str:
    lines = [
        '"""Typed view of the messages that `messages.py` builds on demand. Generated, do not edit."""',
        "",
        "from collections.abc import Sequence",
        "",
        "from ottla.protocol.codec import Message",
        "",
    ]
    for message in messages:
        name = message["name"]
        body: list[str] = []
        for struct in flatten(message["fields"]):
            plain = [{k: v for k, v in one.items() if k != "fields"} for one in struct["fields"]]
            body += stub_class(struct["type"].removeprefix("[]"), plain, name, "    ")
        plain = [{k: v for k, v in one.items() if k != "fields"} for one in message["fields"]]
        own = stub_class(name, plain, name, "")
        lines += [own[0], *body, *own[1:]]
    return "\n".join(lines) + "\n"


def main(libs: Path) -> None:
    definitions: dict[str, dict[str, Any]] = {}
    for pattern in JARS:
        (jar,) = libs.glob(pattern)
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("common/message/") and name.endswith(".json"):
                    one = json.loads(without_comments(archive.read(name).decode()))
                    if one["type"] in ("metadata",):
                        continue
                    if one["validVersions"] != "none":
                        definitions[one["name"]] = message_facts(one)
    messages = sorted(definitions.values(), key=lambda one: one["name"])
    text = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in messages)
    (OUT / "messages.json").write_text(text)
    (OUT / "messages.pyi").write_text(stub(messages))
    print(f"{len(messages)} messages, {len(text)} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
