"""IncrementalAlterConfigs, the pure part: operations on a resource's own settings give its new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.common.config import Setting
from ottla.common.config.values import Kind
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Pauses, pieces


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: int
    value: str | None


def replace_all(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """AlterConfigs: what is given is all there is."""
    _check_once([name for name, _ in configs])
    return {name: _not_null(name, value) for name, value in configs}


def apply_changes(
    own: Mapping[str, str],
    changes: Sequence[Change],
    setting_of: Callable[[str], Setting[Any] | None],
    effective: Callable[[str], str | None],
) -> Pauses[dict[str, str]]:
    """The resource's settings after `changes`; a list that is not set is appended to in its effective form."""
    _check_once([change.name for change in changes])
    result = dict(own)
    for piece in pieces(changes):
        for change in piece:
            _apply(result, change, own, setting_of, effective)
        yield
    return result


def _apply(
    result: dict[str, str],
    change: Change,
    own: Mapping[str, str],
    setting_of: Callable[[str], Setting[Any] | None],
    effective: Callable[[str], str | None],
) -> None:
    name, operation, value = change
    if operation == Operation.DELETE:
        result.pop(name, None)
    elif operation == Operation.SET:
        result[name] = _not_null(name, value)
    elif operation in (Operation.APPEND, Operation.SUBTRACT):
        _check_is_list(name, setting_of(name), Operation(operation))
        before = own[name] if name in own else effective(name)
        result[name] = _edit_list(before or "", Operation(operation), _not_null(name, value))
    else:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operation {operation} on {name}.")


def _check_is_list(name: str, setting: Setting[Any] | None, operation: Operation) -> None:
    if setting is None or setting.kind is not Kind.LIST:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Can't {operation.name} to key {name} because its type is not LIST.")


def _edit_list(before: str, operation: Operation, value: str) -> str:
    items = [item.strip() for item in before.split(",") if item.strip()]
    given = [item.strip() for item in value.split(",")]
    if operation is Operation.APPEND:
        return ",".join(dict.fromkeys(items + given))
    return ",".join(item for item in items if item not in given)


def _not_null(name: str, value: str | None) -> str:
    if value is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for: {name}")
    return value


def _check_once(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
