"""AlterUserScramCredentials v0 (KIP-554). Adds, changes and removes users who log in by SCRAM."""

from __future__ import annotations

from ottla.broker import audit
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.logins.scram_users import Deletion, Upsertion, alter
from ottla.broker.turns import Pause
from ottla.protocol.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse

Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


async def handle(
    broker: Broker, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    principal, host = context.principal, context.client_host
    deletions = [Deletion(deletion.name, deletion.mechanism) for deletion in request.deletions]
    upsertions = [
        Upsertion(
            upsertion.name,
            upsertion.mechanism,
            upsertion.iterations,
            bytes(upsertion.salt),
            bytes(upsertion.salted_password),
        )
        for upsertion in request.upsertions
    ]
    outcomes = await alter(broker, deletions, upsertions, context.requester)
    pause, results = Pause(), []
    for user, fault in outcomes.items():
        await pause.when_due()
        if fault is None:
            audit.tell("user changed", principal, host, user=user)
            results.append(Result(user=user, error_message=None))
        else:
            results.append(Result(user=user, error_code=fault.code, error_message=fault.message))
    return AlterUserScramCredentialsResponse(results=results)
