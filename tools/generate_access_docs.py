"""Writes docs/security-apis.md from the table in ottla.broker.access.rules; `--check` only says if it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from ottla.broker.access.rules import DENIED, RULES

TARGET = Path(__file__).resolve().parents[1] / "docs" / "security-apis.md"

OPENING = """# What each API needs

This page is generated from the code by `tools/generate_access_docs.py` (`make docs`). Rules are Kafka's; they count on
a broker with an authorizer ([security.md](security.md)). The operation is asked of the resource that the request
names; that of type CLUSTER is called `kafka-cluster`.

| API | operation | resource | for | error |
|---|---|---|---|---|
"""


def document() -> str:
    lines = []
    for api, rules in RULES.items():
        if not rules:
            lines.append(f"| {api} | none | | | |\n")
        for number, rule in enumerate(rules):
            name = api if number == 0 else ""
            error = f"`{DENIED[rule.resource].name}`"
            what = rule.of or "the request"
            lines.append(f"| {name} | {rule.operation.name} | {rule.resource.name} | {what} | {error} |\n")
    return OPENING + "".join(lines)


def main() -> int:
    if "--check" in sys.argv:
        return 0 if TARGET.exists() and TARGET.read_text() == document() else 1
    TARGET.write_text(document())
    print(f"wrote {TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
