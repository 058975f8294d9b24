"""What a broker says about one change that was asked of it: nothing, or why not, in one sentence."""

from __future__ import annotations

from ottla.common.errors import ErrorCode, OttlaError
from ottla.common.failures import check

_DENIED = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED,)


def check_answer(code: int, message: str | None, what: str) -> None:
    """As `check`, and with the broker's own words, where it has some."""
    if message and code not in _DENIED:
        try:
            check(code, what)
        except OttlaError as error:
            said = f"{what}: {' '.join(message.split()).rstrip('.')} ({ErrorCode(code).name})."
            raise (OttlaError(said) if type(error) is OttlaError else error) from None
    check(code, what)
