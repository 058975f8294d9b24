"""Fenced code blocks and links of a page of documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """`language` is "" for a block of shell commands or plain text."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(one[1], one[2], text.count("\n", 0, one.start()) + 2) for one in _FENCE.finditer(text)]


def links(page: Path) -> list[str]:
    return _LINK.findall(_FENCE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
