"""Records whose values were written with a schema registry: for the rest of `ottla consume` their values are JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ottla.cli.records.reader import Plan
from ottla.cli.registry.extra import needs_registry
from ottla.common.errors import OttlaError


class Decoded:
    """A message with another value."""

    def __init__(self, message: Any, value: bytes | None) -> None:
        self._message = message
        self._value = value

    def value(self) -> bytes | None:
        return self._value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)


def decoding_plan(plan: Plan, client: Any) -> Plan:
    """The same plan, for which values are decoded before they are filtered and printed."""
    with needs_registry():
        from ottla.schemas.rows import BadValue, Values

    values = Values(client)

    def decoded(message: Any) -> Decoded:
        data = message.value()
        if data is None:
            return Decoded(message, None)
        try:
            with needs_registry():
                return Decoded(message, json.dumps(values.decode(data), ensure_ascii=False).encode())
        except BadValue as error:
            where = f"{message.topic()}-{message.partition()} offset {message.offset()}"
            raise OttlaError(f"{where}: {str(error).rstrip('.')}; leave out --schema to see the bytes.") from None

    return replace(
        plan,
        printer=lambda message: plan.printer(decoded(message)),
        accepts=lambda message: plan.accepts(decoded(message)),
    )
