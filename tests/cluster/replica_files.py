"""What the replicas of a partition have on disk, batch by batch, and where they differ.

Segments may begin at other offsets on another broker, so files are not compared but the batches in them: followers
append what they fetch unchanged, hence every batch is the same bytes everywhere, below the high watermark at least.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

_OFFSET_AND_SIZE = struct.Struct(">qi")


def batches(folder: Path) -> dict[int, bytes]:
    """Every whole batch in the folder of a partition, by its base offset."""
    found: dict[int, bytes] = {}
    for segment in sorted(folder.glob("*.log")):
        content = segment.read_bytes()
        at = 0
        while at + _OFFSET_AND_SIZE.size <= len(content):
            base_offset, size = _OFFSET_AND_SIZE.unpack_from(content, at)
            end = at + _OFFSET_AND_SIZE.size + size
            if size <= 0 or end > len(content):
                break  # what was never acknowledged, or a file that is made larger than it is filled
            found[base_offset] = content[at:end]
            at = end
    return found


def differences(folders: Mapping[int, Path], below: int) -> list[str]:
    """Between the replicas of one partition, in words; `below` is the high watermark."""
    logs = {
        broker: {offset: batch for offset, batch in batches(folder).items() if offset < below}
        for broker, folder in folders.items()
    }
    (first, reference), *others = logs.items()
    found = []
    for broker, log in others:
        for offset in sorted(reference.keys() | log.keys()):
            if reference.get(offset) != log.get(offset):
                shown = {first: _shown(reference.get(offset)), broker: _shown(log.get(offset))}
                found.append(f"{folders[broker].name} at {offset}: {shown}")
                break  # what follows is different as well
    return found


def _shown(batch: bytes | None) -> str:
    return "nothing" if batch is None else f"{len(batch)} bytes, leader epoch {int.from_bytes(batch[12:16], 'big')}"
