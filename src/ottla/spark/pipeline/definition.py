"""What a pipeline is: a function from topics to DataFrames, and how its results are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.schemas.registry import SchemaRegistry
    from ottla.spark.pipeline.topics import Topics

MODES = ("append", "update", "complete")
# A name is also a folder, a transactional id and a consumer group.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)

Build = Callable[["Topics"], Any]


@dataclass(frozen=True)
class Pipeline:
    """`build` gets the topics and returns a DataFrame for `to`, or {topic: DataFrame} for several of them."""

    name: str
    build: Build
    to: str | None = None
    # The columns that become the key of a record.
    key: tuple[str, ...] = ()
    mode: str = "append"
    # Between the starts of two batches, as "5 seconds"; without it a batch follows the last one at once.
    every: str | None = None
    # Where bad records go; NAME-dead-letters if it is not said.
    dead_letters: str | None = None
    # The consumer group that shows how far the pipeline has read; called like the pipeline if it is not said.
    group: str | None = None
    compression: str = "lz4"
    # Values are written by a schema of this registry, and not as JSON.
    schema: SchemaRegistry | None = None
    # Keys, too: one column as its own type, several as a record.
    key_schema: SchemaRegistry | None = None
    # Whether records name in a header what they were made of.
    lineage: bool = False
    # Settings of the Spark session.
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise OttlaError(
                f"'{self.name}' cannot be the name of a pipeline: take letters, digits, '-', '_' and '.', up to 200."
            )
        if self.mode not in MODES:
            raise OttlaError(f"pipeline '{self.name}' has the mode '{self.mode}': choose one of {', '.join(MODES)}.")

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters or f"{self.name}-dead-letters"


def pipeline(
    *,
    name: str | None = None,
    to: str | None = None,
    key: str | Sequence[str] = (),
    mode: str = "append",
    every: str | None = None,
    dead_letters: str | None = None,
    group: str | None = None,
    compression: str = "lz4",
    schema: SchemaRegistry | None = None,
    key_schema: SchemaRegistry | None = None,
    lineage: bool = False,
    conf: Mapping[str, Any] | None = None,
) -> Callable[[Build], Pipeline]:
    """Makes a function a pipeline, which is called like the function (with '-' for '_') if no name is given.

    With `lineage=True` records say in a header what they were made of, for `ottla trace`: which record, if their rows
    have kept the column `record` (or topic, partition and offset of a stream without a schema), else which batch."""

    def decorate(build: Build) -> Pipeline:
        return Pipeline(
            name=name or build.__name__.strip("_").replace("_", "-"),
            build=build,
            to=to,
            key=(key,) if isinstance(key, str) else tuple(key),
            mode=mode,
            every=every,
            dead_letters=dead_letters,
            group=group,
            compression=compression,
            schema=schema,
            key_schema=key_schema,
            lineage=lineage,
            conf={setting: _text(value) for setting, value in (conf or {}).items()},
        )

    return decorate


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
