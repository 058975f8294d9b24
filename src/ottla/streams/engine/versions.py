"""Which runs of an application there are: the first, and those that did all its work again into topics of their own.

Noted in the folder of the application, beside its checkpoint. One of them is in charge: the one that `ottla streams
run` goes on with, and that is meant by the application's name. A number is never used twice, since topics of a version
that was given up may still be there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ottla.client.admin.topic_settings import topic_settings
from ottla.client.admin.topics import ensure_topic
from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import Home
from ottla.streams.errors import ErrorHandling
from ottla.streams.program import output_suffix, version_id
from ottla.streams.topology import Topology


@dataclass(frozen=True)
class Versions:
    application: str
    in_charge: str
    last: int = 1
    # By id, without those that were deleted: topics that it writes, by their names in the program.
    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    # Topics of the first run that may be of others too: those of late records and dead letters.
    shared: list[str] = field(default_factory=list)

    def number(self, id: str) -> int:
        return next(each for each in range(1, self.last + 1) if version_id(self.application, each) == id)

    @property
    def waiting(self) -> str | None:
        """The newest that is not in charge yet."""
        newer = [id for id in self.topics if self.number(id) > self.number(self.in_charge)]
        return max(newer, key=self.number, default=None)

    def deletable(self, id: str) -> list[str]:
        """What nobody else writes to."""
        return sorted(set(self.topics[id].values()) - set(self.shared))

    def with_next(self, topology: Topology, handling: ErrorHandling, written: Sequence[str]) -> Versions:
        """With one that waits; the one that waits already, if there is one. `written`: what the first run wrote, as it
        said itself: the program may have changed since."""
        number = self.last + 1 if self.waiting is None else self.number(self.waiting)
        named, others = outputs_of(topology, handling)
        known, shared = dict(self.topics), self.shared
        if self.last == 1 and not known:
            known[self.application] = {topic: topic for topic in [*written, *others]}
            shared = others
        id, suffix = version_id(self.application, number), output_suffix(number)
        known[id] = {topic: topic + suffix for topic in [*named, *others]}
        return replace(self, last=max(self.last, number), topics=known, shared=shared)

    def without(self, id: str) -> Versions:
        left = {each: topics for each, topics in self.topics.items() if each != id}
        in_charge = self.in_charge if self.in_charge != id else max(left, key=self.number, default=self.application)
        return replace(self, topics=left, in_charge=in_charge)


def outputs_of(topology: Topology, handling: ErrorHandling) -> tuple[list[str], list[str]]:
    """Topics of sinks that can be named, besides its own; and those of late records and dead letters."""
    named = {node.topic for node in topology.sinks() if isinstance(node.topic, str)} - topology.internal_topics.keys()
    letters = {handling.dead_letter_topic} if handling.dead_letter_topic is not None else set()
    return sorted(named), sorted((topology.late_topics | letters) - named)


def read_versions(home: Home) -> Versions:
    try:
        found = json.loads(home.versions.read_text())
        return Versions(**found)
    except FileNotFoundError:
        return Versions(home.name, home.name)
    except (ValueError, TypeError):
        raise OttlaError(f"the file {home.versions} is not as Ottla wrote it.") from None


def write_versions(home: Home, versions: Versions) -> None:
    """A reader sees the old ones or the new ones, never a part."""
    new = Path(f"{home.versions}.new")
    new.write_text(json.dumps(asdict(versions), indent=1))
    new.replace(home.versions)


def versions_with(folder: Path, id: str) -> tuple[Home, Versions] | None:
    """The application that this is a version of, if it is one."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        home = Home(folder, path.name)
        if home.versions.is_file() and id in (versions := read_versions(home)).topics:
            return home, versions
    return None


def make_outputs(settings: ClientSettings, renamed: Mapping[str, str]) -> None:
    """New topics like the old ones: as many partitions, the same settings. What had no old one is left to others."""
    with ClusterReader(settings) as reader:
        there = reader.partitions(list(renamed))
        own = reader.retried(lambda: topic_settings(reader, list(there)))
        for old, new in renamed.items():
            if old in there:
                kept = {name: each.value for name, each in own.get(old, {}).items() if each.is_own and each.value}
                advice = f"create it like '{old}', or ask for the right to"
                ensure_topic(reader, new, what="the topic", advice=advice, settings=kept, partitions=len(there[old]))
