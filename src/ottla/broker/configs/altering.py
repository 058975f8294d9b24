"""What both requests that alter configurations have in common: one resource after the other, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import Steps


def alter_each(
    resources: Sequence[Any], alter: Callable[[Any], Steps[Any]], answer_class: Callable[..., Any]
) -> Steps[list[Any]]:
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    answers = []
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        answer = answer_class(error_message=None, resource_type=kind, resource_name=name)
        try:
            if counts[kind, name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            yield from alter(resource)
        except ApiError as error:
            answer.error_code, answer.error_message = error.code, error.message
        answers.append(answer)
        yield None
    return answers
