"""Whether each record of a batch has a key, as a compacted topic asks for.

The compiled walk goes to a thread, where it does without the interpreter lock; in plain Python it takes turns on the
loop, because a thread that holds the lock would stall it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.common.errors import ApiError, ErrorCode
from ottla.kernel import walk
from ottla.kernel.errors import CorruptRecords
from ottla.records.validate import RecordErrors

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

# The compiled walk is over so many bytes sooner than a thread has begun.
_INLINE_BYTES_MAX = 16 * 1024


async def check_keys(broker: Broker, plain: bytes, count: int) -> None:
    """Raises ApiError."""
    try:
        if not walk.IS_COMPILED:
            missing = await broker.turns.queue(walk.keyless_steps(plain, count))
        elif len(plain) <= _INLINE_BYTES_MAX:
            missing = walk.keyless_records(plain, count)
        else:
            missing = await broker.run_in_thread(walk.keyless_records, plain, count)
    except CorruptRecords as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if missing.total:
        details = tuple((number, "a record of a compacted topic has a key") for number in missing.first)
        raise RecordErrors(f"{missing.total} records of a compacted topic have no key", details)
