"""`Application`: a topology with a name and how it is run; what `ottla streams run app.py` looks for in a file.

    builder = StreamsBuilder()
    builder.stream("orders").filter(is_large).to("large-orders")
    app = Application("large-orders", builder)

A file with a StreamsBuilder and no Application is one as well: it is called like the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ottla.common.errors import OttlaError
from ottla.common.guarantees import EXACTLY_ONCE, check_guarantee
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.errors import DEFAULT_HANDLING, ErrorHandling
from ottla.streams.state.specs import check_name
from ottla.streams.topology import Topology


class Application:
    def __init__(
        self,
        id: str,
        topology: Topology | StreamsBuilder,
        *,
        handling: ErrorHandling = DEFAULT_HANDLING,
        options: Mapping[str, Any] | None = None,
        every: str | None = None,
        conf: Mapping[str, Any] | None = None,
        processing_guarantee: str = EXACTLY_ONCE,
        lineage: bool = False,
    ) -> None:
        """`id`: of its consumer group, its transactional id and its topics. `options`: of the source, as
        {"maxOffsetsPerTrigger": 10_000}; `every`: the least time between two batches, as "1 second"; `conf`: settings
        of the Spark session; `processing_guarantee`: "exactly_once_v2" or "at_least_once"; `lineage`: whether records
        name in a header what they were made of, for `ottla trace`."""
        check_name(id, "an application")
        self.id = id
        self.topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
        self.handling = handling
        self.options = dict(options or {})
        self.every = every
        self.processing_guarantee = check_guarantee(processing_guarantee)
        self.lineage = lineage
        self.conf = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in _of(conf)}

    def called(self, id: str) -> Application:
        """The same with another id, and so with state of its own."""
        return self._like(id, self.topology, self.handling)

    def version(self, number: int) -> Application:
        """The same from the start, with an id, state and output topics of its own; the first version is this one."""
        if number == 1:
            return self
        suffix = output_suffix(number)
        letters = self.handling.dead_letter_topic
        handling = self.handling if letters is None else replace(self.handling, dead_letter_topic=letters + suffix)
        return self._like(version_id(self.id, number), self.topology.with_output_suffix(suffix), handling)

    def _like(self, id: str, topology: Topology, handling: ErrorHandling) -> Application:
        return Application(
            id,
            topology,
            handling=handling,
            options=self.options,
            every=self.every,
            conf=self.conf,
            processing_guarantee=self.processing_guarantee,
            lineage=self.lineage,
        )


def version_id(id: str, number: int) -> str:
    return id if number == 1 else f"{id}-v{number}"


def output_suffix(number: int) -> str:
    return "" if number == 1 else f".v{number}"


def _of(given: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    return list((given or {}).items())


def application_in(path: Path, module: ModuleType) -> Application:
    """Raises OttlaError where there is none, or more than one."""
    values = list({id(value): value for value in vars(module).values()}.values())
    found = [value for value in values if isinstance(value, Application)]
    if not found:
        builders = [value for value in values if isinstance(value, StreamsBuilder)]
        if len(builders) == 1:
            return Application(path.stem.replace("_", "-"), builders[0])
        raise OttlaError(f"{path} has no application: add `app = Application('NAME', builder)` from ottla.streams.")
    if len(found) > 1:
        names = ", ".join(application.id for application in found)
        raise OttlaError(f"{path} has several applications ({names}): keep each in a file of its own.")
    return found[0]
