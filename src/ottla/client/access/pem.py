"""PEM as people put it into a setting: with its lines, on one line with blanks, or with `\\n` for line ends."""

from __future__ import annotations

import re

from ottla.common.errors import OttlaError

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE_CHARS = 64


def tidied(text: str, setting: str, what: str) -> str:
    """The blocks of `text` that are a `what` (CERTIFICATE, PRIVATE KEY), as OpenSSL reads them. Raises OttlaError."""
    blocks = [match for match in _BLOCK.finditer(text.replace("\\n", "\n")) if match[1].endswith(what)]
    if not blocks:
        raise OttlaError(f"{setting} wants the text of a PEM file, with -----BEGIN {what}----- in it.")
    return "".join(_block(match[1], match[2]) for match in blocks)


def _block(kind: str, body: str) -> str:
    if ":" in body:  # headers of an old encrypted key, which belong on lines of their own
        content = body.strip("\n")
    else:
        packed = "".join(body.split())
        content = "\n".join(packed[at : at + _LINE_CHARS] for at in range(0, len(packed), _LINE_CHARS))
    return f"-----BEGIN {kind}-----\n{content}\n-----END {kind}-----\n"
