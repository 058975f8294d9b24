"""A connector's settings as a form: what its worker says of each, and what comes back from the page. PURE.

The worker names the settings, with their documentation, defaults and what is wrong with them; nothing of that is known
here. Secrets are not sent to the page: a value that comes back as it was shown is the one that is stored.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.common.errors import OttlaError
from ottla.console.connect_client import HIDDEN, is_secret, shown_setting

PREFIX = "setting:"
OTHERS = "others"
VERSION = "version"
# In names of settings that say where a connector goes: it shows its secrets there.
_ADDRESS_WORDS = ("url", "uri", "host", "address", "server", "endpoint", "port", "proxy", "broker", "domain")
# They have a place of their own on the page.
_GIVEN = ("name", "connector.class")
_CHOICES_MAX = 200


@dataclass(frozen=True)
class Field:
    name: str
    title: str
    doc: str
    default: str
    group: str
    value: str
    errors: tuple[str, ...]
    choices: tuple[str, ...]
    is_required: bool
    is_secret: bool
    is_important: bool

    @property
    def is_open(self) -> bool:
        """Whether it is seen at once, or among all the others."""
        return self.is_required or self.is_important or bool(self.errors) or bool(self.value)


@dataclass(frozen=True)
class ConnectorForm:
    fields: tuple[Field, ...]
    # `name=value` lines, of settings that the worker does not describe.
    others: str
    # What is wrong with those, and with the connector as a whole.
    errors: tuple[str, ...] = ()

    @property
    def open_fields(self) -> list[Field]:
        return [field for field in self.fields if field.is_open]

    @property
    def groups(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self.fields:
            if not field.is_open:
                found.setdefault(field.group, []).append(field)
        return found

    @property
    def error_count(self) -> int:
        return len(self.errors) + sum(len(field.errors) for field in self.fields)


def form_of(answer: Any, config: Mapping[str, str], refused: Mapping[str, str] | None = None) -> ConnectorForm:
    """`answer`: the worker's, to `config`. `refused`: settings that we did not even send, and why."""
    refused = refused or {}
    fields: list[Field] = []
    errors: list[str] = []
    for one in answer.get("configs") or ():
        definition, value = one.get("definition") or {}, one.get("value") or {}
        name = str(definition.get("name") or value.get("name") or "")
        found = tuple(str(error) for error in value.get("errors") or ())
        if name in refused:
            found = (refused[name],)
        given = config.get(name, "")
        if given and (definition.get("type") == "PASSWORD" or is_secret(name)):
            # Some say what they did not like.
            found = tuple(error.replace(given, HIDDEN) for error in found)
        if name in _GIVEN:
            errors += found
        elif value.get("visible", True) or found or name in config:
            fields.append(_field(name, definition, value, config.get(name, ""), found))
    known = {field.name for field in fields} | set(_GIVEN)
    errors += [f"{name}: {why}" for name, why in refused.items() if name not in known]
    others = [f"{key}={shown_setting(key, value)}" for key, value in config.items() if key not in known]
    fields.sort(key=lambda field: (not field.is_required, not field.is_important))
    return ConnectorForm(tuple(fields), "\n".join(sorted(others)), tuple(errors))


def _field(name: str, definition: Any, value: Any, given: str, errors: tuple[str, ...]) -> Field:
    kind = str(definition.get("type", "STRING"))
    default = definition.get("default_value")
    choices = tuple(str(one) for one in value.get("recommended_values") or ())[:_CHOICES_MAX]
    secret = kind == "PASSWORD" or is_secret(name)
    if kind == "BOOLEAN":
        choices = ("true", "false")
    return Field(
        name,
        str(definition.get("display_name") or name),
        str(definition.get("documentation") or ""),
        "" if default is None or secret else str(default),
        str(definition.get("group") or "Connector"),
        shown_value(name, given, is_secret_type=secret),
        errors,
        choices,
        bool(definition.get("required")),
        secret,
        definition.get("importance") == "HIGH",
    )


def shown_value(name: str, value: str, *, is_secret_type: bool = False) -> str:
    if is_secret_type and value and not value.startswith("${"):
        return HIDDEN
    return shown_setting(name, value)


def read_settings(
    given: Mapping[str, str], others: str, stored: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Settings, and those of them that cannot be taken, with the reason. What is empty is left to its default.
    `given` are fields by their names, `others` lines; `stored` is what the worker has now."""
    found = {name: value.strip() for name, value in given.items() if value.strip()}
    for line in others.splitlines():
        name, equals, value = line.partition("=")
        if not line.strip():
            continue
        if not equals or not name.strip():
            raise OttlaError(f"a setting is a line such as transforms=mask, not '{line.strip()[:60]}'.")
        found[name.strip()] = value.strip()
    config: dict[str, str] = {}
    refused: dict[str, str] = {}
    for name, value in found.items():
        if HIDDEN not in value:
            config[name] = value
            continue
        before = stored.get(name, "")
        if before and value in (shown_value(name, before), HIDDEN):
            config[name] = before
        else:
            refused[name] = f"{HIDDEN} stands for a secret that is not shown: write the whole value."
    moved = [name for name in differences(stored, config) if _is_address(name, config.get(name, ""))]
    for name in config if moved else ():
        if HIDDEN in found[name]:
            refused[name] = f"{moved[0]} is another address: write the secret again if it is to be sent there."
    return {name: value for name, value in config.items() if name not in refused}, refused


def _is_address(name: str, value: str) -> bool:
    return "://" in value or any(word in name.lower() for word in _ADDRESS_WORDS)


def version_of(config: Mapping[str, str], key: bytes) -> str:
    """Tells whether a configuration is still the same, and nothing of what is in it to those without the key."""
    return hmac.new(key, json.dumps(sorted(config.items())).encode(), "sha256").hexdigest()


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Sequence[str]:
    """Names of settings that were set, changed or removed."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
