"""What went wrong in a task, as it crosses to the driver: a sentence, where it happened, and whether it may pass."""

from __future__ import annotations

import traceback
from enum import StrEnum
from typing import NamedTuple

from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, failure_in
from ottla.connect.api import ConnectorFailure, Outage
from ottla.connect.api.config import ConfigInvalid


class Kind(StrEnum):
    # The other side is away: the same again, later.
    OUTAGE = "outage"
    # Trying again does not help until somebody changes something.
    LASTING = "lasting"
    # Nobody knows: the same again, later, with growing pauses.
    OTHER = "other"


class Problem(NamedTuple):
    kind: Kind
    sentence: str
    trace: str


class RoundFailed(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


def problem_of(error: BaseException) -> Problem:
    if isinstance(error, RoundFailed):
        return error.problem
    if isinstance(error, Outage):
        kind = Kind.OUTAGE
    elif isinstance(error, ConnectorFailure | ConfigInvalid):
        kind = Kind.LASTING
    elif failure_in(error) is Failure.RETRIABLE:
        kind = Kind.OUTAGE
    else:
        kind = Kind.OTHER
    sentence = str(error) if isinstance(error, OttlaError) and str(error) else f"{type(error).__name__}: {error}"
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return Problem(kind, sentence, "".join(lines))
