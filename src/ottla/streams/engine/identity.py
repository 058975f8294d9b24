"""What a checkpoint belongs to: an application, and the shape of its topology. A program that was changed so that its
state does not fit any more is refused before it runs, with what changed.

Noted in the checkpoint as JSON, by store and by topic of the application. What may change freely is not in it:
functions, stateless operators, retention, new stores and new topics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.common.errors import OttlaError
from ottla.spark.sink.checkpoint import Checkpoint
from ottla.streams.serdes import Serde
from ottla.streams.state.specs import changelog_topic
from ottla.streams.topology import Topology

_FOLDER = "ottla/application"
_VERSION = 1
Shape = dict[str, Any]


def shape_of(topology: Topology, application_id: str) -> Shape:
    stores = {}
    for sub in topology.sub_topologies():
        for name in sub.stores:
            spec = topology.stores[name]
            stores[name] = {
                "kind": spec.kind.value,
                "key": serde_name(spec.key_serde),
                "value": serde_name(spec.value_serde),
                "window_ms": spec.window_size_ms,
                "sub_topology": sub.number,
            }
    return {
        "version": _VERSION,
        "application": application_id,
        "stores": stores,
        "repartition": sorted(topology.internal_topics),
    }


def task_topic(application_id: str) -> str:
    """Where tasks note which run of them counted, and what they remember."""
    return f"{application_id}-task-changelog"


def own_topics(shape: Shape) -> list[str]:
    """What the application of this shape has made in the cluster."""
    application: str = shape["application"]
    logs = [changelog_topic(application, store) for store in shape["stores"]]
    return [*logs, *(f"{application}-{topic}" for topic in shape["repartition"]), task_topic(application)]


def serde_name(serde: Serde) -> str:
    """The same in every process: the default text of an object has its address in it."""
    # Also of a serde of somebody else that wraps another one.
    inner = getattr(serde, "inner", None)
    text = repr(serde)
    if " at 0x" not in text:
        return text
    return type(serde).__name__ if inner is None else f"{type(serde).__name__}({serde_name(inner)})"


def check_identity(checkpoint: Checkpoint, shape: Shape) -> None:
    """Notes the shape in a new checkpoint, and after changes that are allowed. Raises OttlaError for others."""
    before = noted_shape(checkpoint)
    if before == shape:
        return
    if before is not None:
        # Without a batch there is no state yet: a program may be mended until it starts.
        if checkpoint.newest_batch() is not None:
            _refuse_changes(checkpoint.location, before, shape)
        checkpoint.remove(f"{_FOLDER}/0")
    checkpoint.write(f"{_FOLDER}/0", json.dumps(shape, indent=1, sort_keys=True))


def noted_shape(checkpoint: Checkpoint) -> Shape | None:
    if not checkpoint.numbers(_FOLDER):
        return None
    return _parsed(checkpoint.read(f"{_FOLDER}/0"), checkpoint.location)


def shape_in(folder: Path) -> Shape | None:
    """The same of a checkpoint on this machine, for which nobody needs Spark."""
    try:
        text = (folder / _FOLDER / "0").read_text()
    except OSError:
        return None
    return _parsed(text, str(folder))


def _parsed(text: str, location: str) -> Shape:
    found = json.loads(text)
    if found.get("version") != _VERSION:
        raise OttlaError(f"the checkpoint {location} is of another version of Ottla Streams.")
    return dict(found)


def _refuse_changes(location: str, before: Shape, after: Shape) -> None:
    if before["application"] != after["application"]:
        raise OttlaError(
            f"the checkpoint {location} belongs to the application '{before['application']}', not to "
            f"'{after['application']}': each has its own."
        )
    changes = list(_changes(before, after))
    if changes:
        more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
        raise OttlaError(
            f"the topology of application '{after['application']}' does not fit the state that it has: {changes[0]}"
            f"{more}. Undo that, reset the application, which starts over, or give it another id."
        )


def _changes(before: Shape, after: Shape) -> Iterator[str]:
    added = [name for name in after["stores"] if name not in before["stores"]]
    for name, known in before["stores"].items():
        now = after["stores"].get(name)
        if now is None:
            also = f", and '{added[0]}' is new; `store=` gives a store a name that stays" if added else ""
            yield f"the store '{name}' is gone{also}"
            continue
        for what, told in _TOLD.items():
            if known[what] != now[what]:
                yield f"the store '{name}' has {told} {now[what]}, and had {known[what]}"
    new = [topic for topic in after["repartition"] if topic not in before["repartition"]]
    for topic in before["repartition"]:
        if topic not in after["repartition"]:
            also = f", and '{new[0]}' is new; `name=` gives it a name that stays" if new else ""
            yield f"the topic '{topic}', in which records may wait, is not read any more{also}"


_TOLD = {
    "kind": "the kind",
    "key": "keys by",
    "value": "values by",
    "window_ms": "windows in ms of",
    "sub_topology": "its place in sub-topology",
}
