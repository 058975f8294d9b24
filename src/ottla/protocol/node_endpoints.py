"""Where brokers are, in the tags of an answer to Produce or Fetch (KIP-951)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from ottla.protocol.primitives import write_uvarint

_INT32 = struct.Struct(">i")


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


def write_endpoints(out: bytearray, endpoints: Sequence[NodeEndpoint]) -> None:
    """The tags at the end of an answer: this is the first of them, and the only one."""
    if not endpoints:
        out.append(0)
        return
    body = bytearray()
    write_uvarint(body, len(endpoints) + 1)
    for node in endpoints:
        body += _INT32.pack(node.node_id)
        _write_text(body, node.host)
        body += _INT32.pack(node.port)
        _write_text(body, node.rack)
        body.append(0)
    out += b"\x01\x00"
    write_uvarint(out, len(body))
    out += body


def _write_text(out: bytearray, text: str | None) -> None:
    raw = None if text is None else text.encode()
    write_uvarint(out, 0 if raw is None else len(raw) + 1)
    out += raw or b""
