"""Kafka messages as plain classes, with an encoder and a decoder compiled for each version in use.

`messages.json` states each message's fields, versions and defaults. The first time a (message, version) pair is
needed, straight-line Python for just that version is generated and compiled. Three things follow:

- one class serves every version: a field that a version lacks holds its default after decoding, and is left out
  when encoding, so handlers are written once;
- nothing is allocated on the word of a client: each length is compared with what remains of the buffer first
  (a generic native decoder we tried aborts the process on a forged array length);
- start-up pays for nothing that is not used.

A message with thousands of elements takes tens of milliseconds, so there is a second form of each encoder and decoder,
made of the same source: a generator that stops every few elements (`decode_in_steps`, `encode_in_steps`).

UUIDs are 16 raw bytes, times are integer milliseconds, `records` fields are zero-copy memoryviews.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from ottla.common.steps import Pauses
from ottla.protocol.compiler import ELEMENTS_MAX, REQUEST_ELEMENTS_MAX, STEP_ELEMENTS, Compiler
from ottla.protocol.definitions import (
    ZERO_UUID,
    Message,
    definition,
    message_class,
    message_names,
    version_range,
)
from ottla.protocol.primitives import TAGS_MAX, MalformedMessage, read_uvarint, write_uvarint

__all__ = [
    "ELEMENTS_MAX",
    "REQUEST_ELEMENTS_MAX",
    "STEP_ELEMENTS",
    "TAGS_MAX",
    "ZERO_UUID",
    "MalformedMessage",
    "Message",
    "decode",
    "decode_from",
    "decode_in_steps",
    "decoder_for",
    "definition",
    "encode",
    "encode_in_steps",
    "encoder_for",
    "message_class",
    "message_names",
    "read_uvarint",
    "version_range",
    "write_uvarint",
]


@cache
def decoder_for(name: str, version: int, in_steps: bool = False) -> Callable[[Any, int], Any]:
    """Gives the message and where it ended; `in_steps`, as a generator."""
    decoder: Callable[[Any, int], Any] = Compiler(name, version).decoder(in_steps=in_steps)
    return decoder


@cache
def encoder_for(name: str, version: int, in_steps: bool = False) -> Callable[[Any, bytearray], Any]:
    encoder: Callable[[Any, bytearray], Any] = Compiler(name, version).encoder(in_steps=in_steps)
    return encoder


_READ_ERRORS = (struct.error, IndexError, UnicodeDecodeError)


def decode(name: str, version: int, buffer: Any, position: int = 0) -> Any:
    """Decode one message; raises MalformedMessage for anything that is not one."""
    return decode_from(name, version, buffer, position)[0]


def decode_from(name: str, version: int, buffer: Any, position: int = 0) -> tuple[Any, int]:
    """As `decode`, and where the message ended."""
    try:
        found: tuple[Any, int] = decoder_for(name, version)(buffer, position)
        return found
    except _READ_ERRORS as error:
        raise MalformedMessage(f"{name} v{version}: {error}") from None


def decode_in_steps(name: str, version: int, buffer: Any, position: int = 0) -> Pauses[Any]:
    """As `decode`, with stops on the way."""
    try:
        message, _ = yield from decoder_for(name, version, True)(buffer, position)
    except _READ_ERRORS as error:
        raise MalformedMessage(f"{name} v{version}: {error}") from None
    return message


def encode(message: Message, version: int, head: bytes = b"") -> bytearray:
    """`head` and the message: large ones are not copied once more to put something before them."""
    out = bytearray(head)
    encode_into(out, message, version)
    return out


def encode_into(out: bytearray, message: Message, version: int) -> None:
    """`out` may be of a kind that adds what it is given in another way."""
    encoder_for(type(message).__name__, version)(message, out)


def encode_in_steps(message: Message, version: int) -> Pauses[bytearray]:
    """As `encode`, with stops on the way."""
    out = bytearray()
    yield from encoder_for(type(message).__name__, version, True)(message, out)
    return out
