"""Forms and queries as pages read them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.requests import Request

from ottla.common.errors import OttlaError
from ottla.console.web import words

FORM_BYTES_MAX = 12 * 1024 * 1024
# From the head of the request to the last byte of the form: whoever never sends it would hold what is here for ever.
FORM_S_MAX = 60.0
_FIELDS_MAX = 20_000
_DIGITS_MAX = 18
INT_MAX, LONG_MAX = 2**31 - 1, 10**_DIGITS_MAX - 1


def whole(text: str, most: int = INT_MAX) -> int | None:
    """A whole number that fits into Kafka's fields; Python refuses to read one of thousands of digits."""
    text = text.strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else None
    return None if number is None or number > most else number


class Form:
    """What a page sent: fields by name."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        return self._fields.get(name, [default])[-1]

    def stripped(self, name: str) -> str:
        return self.text(name).strip()

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._fields

    def number(self, name: str, what: str, *, least: int = 0, most: int = INT_MAX) -> int:
        number = whole(self.text(name), most)
        if number is None or number < least:
            raise OttlaError(f"{what} is a whole number from {least} to {most}, not '{self.stripped(name)[:40]}'.")
        return number

    def names(self) -> list[str]:
        return list(self._fields)


async def read_form(request: Request, bytes_max: int = FORM_BYTES_MAX) -> Form:
    """Raises OttlaError for one that is too long, or does not arrive."""
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_S_MAX):
            async for piece in request.stream():
                body += piece
                if len(body) > bytes_max:
                    raise OttlaError(
                        f"the form is longer than {words.size(bytes_max)}: send large records with a client."
                    )
    except TimeoutError:
        raise OttlaError(f"the form did not arrive within {FORM_S_MAX:.0f} seconds: send it again.") from None
    try:
        return Form(parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX))
    except ValueError as error:
        raise OttlaError(f"the form cannot be read: {error}.") from None


def positive(request: Request, name: str, default: int, most: int) -> int:
    """A number of a query; what is none is as if it was not there."""
    number = whole(request.query_params.get(name, ""))
    return default if number is None else min(most, max(1, number))
