"""DescribeUserScramCredentials v0. There are no credentials yet, so nobody has any."""

from __future__ import annotations

from collections import Counter

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def handle(
    broker: Broker, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    counts = Counter(user.name for user in request.users or ())
    results = yield from each(counts.items(), _unknown)
    return DescribeUserScramCredentialsResponse(results=results)


def _unknown(asked: tuple[str, int]) -> Result:
    user, count = asked
    if count > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    else:
        code = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {user}"
    return DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult(
        user=user, error_code=code, error_message=message
    )
