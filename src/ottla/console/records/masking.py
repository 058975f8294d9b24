"""Fields that are not shown: `topic:field,field` for topics whose name matches, as in `payments*:card.number`.

A record is masked before anything else looks at it. So a filter cannot ask for what is hidden, and neither a download
nor the bytes of a record have it. A value whose fields cannot be found, because it is not JSON, is hidden as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ottla.common.errors import OttlaError
from ottla.common.where import Record
from ottla.console.records import exact_json

HIDDEN = "•••"
_HIDDEN_BYTES = HIDDEN.encode()


@dataclass(frozen=True)
class Mask:
    topic: str
    # key, value, headers; then names.
    paths: tuple[tuple[str, ...], ...]


class Masks:
    def __init__(self, masks: Sequence[Mask]) -> None:
        self._masks = masks

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Masks:
        """Raises OttlaError."""
        found = []
        for text in texts:
            topic, colon, fields = text.partition(":")
            names = [name.strip() for name in fields.split(",") if name.strip()]
            if not colon or not topic.strip() or not names:
                raise OttlaError(
                    f"--mask takes TOPIC:FIELD,FIELD, as in 'payments:card.number,headers.auth', not '{text}'."
                )
            found.append(Mask(topic.strip(), tuple(_path(name) for name in names)))
        return cls(found)

    @property
    def are_there(self) -> bool:
        return bool(self._masks)

    def of(self, topic: str) -> tuple[tuple[str, ...], ...]:
        return tuple(path for mask in self._masks if fnmatchcase(topic, mask.topic) for path in mask.paths)


def _path(name: str) -> tuple[str, ...]:
    steps = tuple(name.split("."))
    return steps if steps[0] in ("key", "value", "headers") else ("value", *steps)


def masked(record: Record, paths: Sequence[tuple[str, ...]]) -> Record:
    key, value, headers = record.key, record.value, record.headers
    for part in ("key", "value"):
        mine = [path[1:] for path in paths if path[0] == part]
        if not mine:
            continue
        hidden = _masked_bytes(key if part == "key" else value, mine)
        key, value = (hidden, value) if part == "key" else (key, hidden)
    # A header has one name, whatever dots are in it.
    names = {".".join(path[1:]) for path in paths if path[0] == "headers" and len(path) > 1}
    all_headers = any(path == ("headers",) for path in paths)
    headers = [(name, _HIDDEN_BYTES if all_headers or name in names else held) for name, held in headers]
    return replace(record, key=key, value=value, headers=headers, _json={})


def _masked_bytes(data: bytes | None, paths: Sequence[tuple[str, ...]]) -> bytes | None:
    if data is None:
        return None
    if () in paths:
        return _HIDDEN_BYTES
    try:
        tree = exact_json.loads(data)
    except (ValueError, RecursionError):
        return _HIDDEN_BYTES
    if not isinstance(tree, dict | list):
        return _HIDDEN_BYTES
    try:
        for path in paths:
            _hide(tree, path)
        return exact_json.dumps(tree, ensure_ascii=False).encode(errors="replace")
    except RecursionError:  # to write it takes more than to read it
        return _HIDDEN_BYTES


def _hide(tree: Any, path: tuple[str, ...]) -> None:
    """In lists, in each element."""
    if isinstance(tree, list):
        for element in tree:
            _hide(element, path)
    elif isinstance(tree, dict):
        # Whoever flattens records writes `card.number` as one name.
        for steps in range(1, len(path) + 1):
            name, rest = ".".join(path[:steps]), path[steps:]
            if name not in tree:
                continue
            if rest and isinstance(tree[name], dict | list):
                _hide(tree[name], rest)
            else:
                tree[name] = HIDDEN
