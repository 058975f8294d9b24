"""AlterUserScramCredentials v0. Logins are not here yet: nothing to delete, and new credentials are refused."""

from __future__ import annotations

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse

_ABSENT = (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
_REFUSED = (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "SCRAM is not supported by this broker.")


def handle(
    broker: Broker, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> Steps[AlterUserScramCredentialsResponse]:
    outcomes = {deletion.name: _ABSENT for deletion in request.deletions} | {
        upsertion.name: _REFUSED for upsertion in request.upsertions
    }
    return AlterUserScramCredentialsResponse(results=(yield from each(outcomes.items(), _result)))


def _result(
    outcome: tuple[str, tuple[ErrorCode, str]],
) -> AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult:
    user, (code, message) = outcome
    return AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
        user=user, error_code=code, error_message=message
    )
