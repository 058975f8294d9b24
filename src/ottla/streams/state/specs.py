"""What a store is, before there is one: its kind, its serdes, how long it keeps what it has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.streams import serdes

if TYPE_CHECKING:
    from ottla.streams.serdes import Serde
    from ottla.streams.state.bytes_store import BytesStore


class StoreKind(Enum):
    KEY_VALUE = "key-value"
    TIMESTAMPED = "timestamped key-value"
    WINDOW = "window"
    SESSION = "session"
    VERSIONED = "versioned key-value"
    PENDING_JOINS = "records of a join that wait for a partner"
    HELD_UPDATES = "updates that are held back"


@dataclass(frozen=True)
class StoreSpec:
    name: str
    kind: StoreKind
    key_serde: Serde = serdes.json
    value_serde: Serde = serdes.json
    # Of windows and sessions; of versioned stores how far their history goes back.
    retention_ms: int = 0
    window_size_ms: int = 0
    # Joins keep all records of a key, also those of the same moment.
    keeps_duplicates: bool = False
    # Of the right side of a join, where the two differ.
    other_value_serde: Serde | None = None
    # Whether its changes go to a changelog topic.
    is_logged: bool = True

    def open(self, data: BytesStore, application_id: str = "") -> Any:
        from ottla.streams.state.buffers import HeldUpdates, PendingJoins
        from ottla.streams.state.key_value import KeyValueStore, TimestampedKeyValueStore
        from ottla.streams.state.sessions import SessionStore
        from ottla.streams.state.versioned import VersionedKeyValueStore
        from ottla.streams.state.window_store import WindowStore

        kinds: dict[StoreKind, Any] = {
            StoreKind.KEY_VALUE: KeyValueStore,
            StoreKind.TIMESTAMPED: TimestampedKeyValueStore,
            StoreKind.WINDOW: WindowStore,
            StoreKind.SESSION: SessionStore,
            StoreKind.VERSIONED: VersionedKeyValueStore,
            StoreKind.PENDING_JOINS: PendingJoins,
            StoreKind.HELD_UPDATES: HeldUpdates,
        }
        return kinds[self.kind](self, data, changelog_topic(application_id, self.name))


def changelog_topic(application_id: str, store: str) -> str:
    """Kafka's name for it."""
    return f"{application_id}-{store}-changelog"


def key_value_store(
    name: str, *, key: Serde = serdes.json, value: Serde = serdes.json, logged: bool = True
) -> StoreSpec:
    """For `topology.add_store`, `builder.add_store`: a store that a processor reads and writes."""
    return _checked(StoreSpec(name, StoreKind.KEY_VALUE, key, value, is_logged=logged))


def timestamped_store(
    name: str, *, key: Serde = serdes.json, value: Serde = serdes.json, logged: bool = True
) -> StoreSpec:
    return _checked(StoreSpec(name, StoreKind.TIMESTAMPED, key, value, is_logged=logged))


def window_store(
    name: str,
    *,
    retention_ms: int,
    window_size_ms: int,
    key: Serde = serdes.json,
    value: Serde = serdes.json,
    retain_duplicates: bool = False,
    logged: bool = True,
) -> StoreSpec:
    if retention_ms < window_size_ms:
        raise OttlaError(f"store '{name}' keeps {retention_ms} ms, less than one window of {window_size_ms} ms.")
    return _checked(
        StoreSpec(
            name,
            StoreKind.WINDOW,
            key,
            value,
            retention_ms=retention_ms,
            window_size_ms=window_size_ms,
            keeps_duplicates=retain_duplicates,
            is_logged=logged,
        )
    )


def session_store(
    name: str, *, retention_ms: int, key: Serde = serdes.json, value: Serde = serdes.json, logged: bool = True
) -> StoreSpec:
    return _checked(StoreSpec(name, StoreKind.SESSION, key, value, retention_ms=retention_ms, is_logged=logged))


def versioned_store(
    name: str, *, history_ms: int, key: Serde = serdes.json, value: Serde = serdes.json, logged: bool = True
) -> StoreSpec:
    """Values of a key over time: what was valid at a moment can be asked for, as far back as the history goes."""
    if history_ms < 0:
        raise OttlaError(f"the history of store '{name}' cannot be {history_ms} ms.")
    return _checked(StoreSpec(name, StoreKind.VERSIONED, key, value, retention_ms=history_ms, is_logged=logged))


def _checked(spec: StoreSpec) -> StoreSpec:
    check_name(spec.name, "a store")
    return spec


def check_name(name: str, what: str) -> None:
    """Names become parts of topics' names."""
    legal = name and len(name) <= 200 and all(sign.isascii() and (sign.isalnum() or sign in "._-") for sign in name)
    if not legal:
        raise OttlaError(f"{what} cannot be called {name!r}: letters, digits, '.', '_' and '-' only.")
