"""A setting that claims to do something is read somewhere; the others belong in `not_acted_on`."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import ottla
from ottla.common.config import BrokerConfig, GroupConfig, TopicConfig
from ottla.storage.log_config import LogConfig

SOURCES = [path.read_text() for path in Path(ottla.__file__).parent.rglob("*.py")]
CODE = "\n".join(SOURCES)
# Read under their names: the bounds of group settings.
BOUNDS = re.compile(r"group\.consumer\.(min|max)\..*\.ms")
# These too, because a listener may have its own: `of_listener`.
PER_LISTENER = re.compile(r"(ssl|sasl)\..*|connections\.max\.reauth\.ms")


def _is_read(attribute: str) -> bool:
    return re.search(rf"\b_?(config|self|own)\.{attribute}\b", CODE) is not None


def _is_named(name: str) -> bool:
    outside = [source for source in SOURCES if "class TlsSettings(Configuration)" not in source]
    return any(f'"{name}"' in source or f'"{name.removeprefix("ssl.")}"' in source for source in outside)


def test_every_broker_setting_is_read() -> None:
    inherited = {
        synonym.name
        for config in (TopicConfig, GroupConfig)
        for setting in config.definitions().values()
        for synonym in setting.synonyms
    }
    unread = [
        name
        for name, setting in BrokerConfig.definitions().items()
        if name not in inherited and not BOUNDS.fullmatch(name) and not _is_read(setting.attribute)
    ]
    unread = [name for name in unread if not (PER_LISTENER.fullmatch(name) and _is_named(name))]
    assert unread == []


def test_every_setting_of_a_log_is_read() -> None:
    without_effect = {field.name for field in fields(LogConfig) if "without effect" in _doc(field.name)}
    unread = [field.name for field in fields(LogConfig) if not _is_read(field.name)]
    assert set(unread) <= without_effect


def _doc(field_name: str) -> str:
    setting = {one.attribute: one for one in TopicConfig.definitions().values()}.get(field_name)
    return setting.doc if setting is not None else ""
