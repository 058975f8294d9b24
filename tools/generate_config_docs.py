"""Writes docs/configuration.md from the definitions in ottla.common.config; `--check` only says if it is up to date."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ottla.common.config import BrokerConfig, ClientMetricsConfig, GroupConfig, Scope, Setting, TopicConfig
from ottla.common.config.cluster import IdentitySettings, LeaderSettings, ProducerSettings, TopicCreationSettings
from ottla.common.config.configuration import Configuration
from ottla.common.config.groups import ClassicGroupSettings, ConsumerGroupSettings, OffsetSettings
from ottla.common.config.logs import LogCleanerSettings, LogDefaultSettings, LogPlaceSettings
from ottla.common.config.network import NetworkSettings
from ottla.common.config.observing import ObservingSettings
from ottla.common.config.quotas import QuotaSettings
from ottla.common.config.removed import REMOVED
from ottla.common.config.replication import ReplicationSettings
from ottla.common.config.security import AccessSettings, AuditSettings, SaslSettings, TlsSettings, TokenSettings
from ottla.common.config.setting import Unit
from ottla.common.config.transactions import TransactionSettings
from ottla.common.config.zookeeper import ZookeeperSettings

TARGET = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"

AREAS: tuple[tuple[str, type[Configuration]], ...] = (
    ("Who this broker is", IdentitySettings),
    ("ZooKeeper, for a cluster", ZookeeperSettings),
    ("Network and requests", NetworkSettings),
    ("TLS", TlsSettings),
    ("Logins", SaslSettings),
    ("Delegation tokens", TokenSettings),
    ("Who may do what", AccessSettings),
    ("Quotas", QuotaSettings),
    ("The audit trail", AuditSettings),
    ("Metrics and logs of requests", ObservingSettings),
    ("Creating topics", TopicCreationSettings),
    ("Data directories", LogPlaceSettings),
    ("Logs: defaults of topic settings", LogDefaultSettings),
    ("Compaction", LogCleanerSettings),
    ("Replication", ReplicationSettings),
    ("Leaders", LeaderSettings),
    ("Producers", ProducerSettings),
    ("Transactions", TransactionSettings),
    ("Classic groups", ClassicGroupSettings),
    ("Consumer groups (KIP-848)", ConsumerGroupSettings),
    ("Committed offsets", OffsetSettings),
)

OPENING = """# Configuration

This page is generated from the code by `tools/generate_config_docs.py` (`make docs`).

Properties have Kafka's names, types and defaults (Apache Kafka 4.3), so a `server.properties` from Kafka works as it
is. Each layer wins over the ones below it:

1. dynamic settings of one broker (`ottla config set broker 1 ...`, or any Kafka admin client);
2. dynamic settings of all brokers (the broker with the empty name);
3. flags of `ottla start`: `--listen`, `--data-dir`, `--metrics`;
4. `-X key=value` of `ottla start`;
5. the file of `ottla start --config server.properties`;
6. the default.

A property that Kafka knows and Ottla does not act on is named in one warning at the start. A name that nobody knows,
or a wrong value, stops the start with a sentence that names the nearest known property or what was expected.

*Dynamic* says whether a property may be changed while the broker runs: for all brokers at once or for one (*cluster*),
only for one (*broker*), or not at all (empty).

Defaults that differ from Kafka's: `node.id` is 1 (Kafka has none), `log.dir` is `/tmp/ottla-logs` (Kafka's is
`/tmp/kafka-logs`), `zookeeper.session.timeout.ms` is 9 s (Kafka's was 18 s), and `process.roles` and
`controller.listener.names` need not be given. `listeners` and `listener.security.protocol.map` cannot be changed while
the broker runs."""

_SCOPES = {Scope.READ_ONLY: "", Scope.PER_BROKER: "broker", Scope.CLUSTER_WIDE: "cluster"}
_LARGEST = {str(2**31 - 1), str(2**63 - 1), "1.7976931348623157E308"}


def document() -> str:
    parts = [OPENING]
    for title, area in AREAS:
        parts += [f"## {title}", *_table(area.definitions().values(), dynamic=True)]
    parts += [
        "## Topics",
        "Set when a topic is created or later (`ottla config set topic NAME ...`). A topic that does not set one takes "
        "the broker's property of the last column.",
        *_table(TopicConfig.definitions().values(), synonyms=True),
        "## Groups",
        "Set on one group (`ottla config set group NAME ...`), within the bounds that the broker's properties give.",
        *_table(GroupConfig.definitions().values(), synonyms=True),
        "## Client metrics subscriptions",
        "Kept and described for admin clients (KIP-714); no client is asked for metrics.",
        *_table(ClientMetricsConfig.definitions().values()),
        "## Known to Kafka, without effect",
        *_without_effect(),
        "## Gone from Kafka",
        "Recognised in an old file, with a warning:",
        "\n".join(_gone()),
    ]
    return "\n\n".join(parts) + "\n"


def _table(settings: Iterable[Setting[Any]], *, dynamic: bool = False, synonyms: bool = False) -> Iterator[str]:
    columns = ["property", "type", "default", "unit", *(["dynamic"] if dynamic else []), "what it does"]
    columns += ["from the broker's"] if synonyms else []
    rows = [columns, ["---"] * len(columns)]
    for setting in settings:
        row = [f"`{setting.name}`", setting.kind.name.lower(), _default(setting), setting.unit.value]
        row += [_SCOPES[setting.scope]] if dynamic else []
        row.append(_sentence(setting))
        row += [", ".join(f"`{one.name}`" for one in setting.synonyms)] if synonyms else []
        rows.append(row)
    yield "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _sentence(setting: Setting[Any]) -> str:
    expected = setting.check.expected
    return f"{setting.doc} Accepts: {expected}." if expected else setting.doc


def _default(setting: Setting[Any]) -> str:
    text = setting.default_text
    if text is None:
        return "not set"
    if text in _LARGEST:
        return "no limit"
    size = _size(setting.default, setting.unit)
    return f"`{text}`{size}" if text else "empty"


def _size(value: Any, unit: Unit) -> str:
    """A large number in larger units, where it is a whole one."""
    steps: tuple[tuple[str, int], ...]
    if unit is Unit.BYTES and isinstance(value, int):
        steps = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
    elif unit is Unit.MS:
        steps = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))
    else:
        return ""
    for name, size in steps:
        if value >= size and value % size == 0:
            return f" ({value // size} {name})"
    return ""


def _without_effect() -> Iterator[str]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for setting in BrokerConfig.known().values():
        if not setting.acted_on:
            by_reason[setting.doc.partition(": ")[2]].append(setting.name)
    for reason, names in by_reason.items():
        yield f"**{reason[0].upper()}{reason[1:]}** " + ", ".join(f"`{name}`" for name in sorted(names)) + "."


def _gone() -> Iterator[str]:
    by_sentence: dict[str, list[str]] = defaultdict(list)
    for name, sentence in sorted(REMOVED.items()):
        by_sentence[sentence].append(f"`{name}`")
    for sentence, names in by_sentence.items():
        yield f"- {', '.join(names)}: {sentence}."


def main() -> int:
    text = document()
    if "--check" in sys.argv:
        up_to_date = TARGET.exists() and TARGET.read_text() == text
        print(f"{TARGET.name} is up to date" if up_to_date else f"{TARGET.name} is out of date: run make docs")
        return 0 if up_to_date else 1
    TARGET.write_text(text)
    print(f"wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
