"""DescribeUserScramCredentials v0 (KIP-554). Which users log in by SCRAM, and by which mechanisms."""

from __future__ import annotations

from collections import Counter

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.metadata.scram import MECHANISM_NUMBERS
from ottla.protocol.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
_NUMBERS = {mechanism: number for number, mechanism in MECHANISM_NUMBERS.items()}


def handle(
    broker: Broker, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    known = broker.image.scram
    # Without names: everybody.
    counts = Counter(user.name for user in request.users or ()) or Counter(dict.fromkeys(known, 1))

    def result(asked: tuple[str, int]) -> Result:
        user, count = asked
        if count > 1:
            message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            return Result(user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=message)
        if user not in known:
            message = f"Attempt to describe a user credential that does not exist: {user}"
            return Result(user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=message)
        infos = [
            DescribeUserScramCredentialsResponse.CredentialInfo(
                mechanism=_NUMBERS[mechanism], iterations=credential.iterations
            )
            for mechanism, credential in known[user].items()
        ]
        return Result(user=user, credential_infos=infos)

    return DescribeUserScramCredentialsResponse(results=(yield from each(counts.items(), result)))
