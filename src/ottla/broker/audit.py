"""The audit trail: one line for each login, refused login, denial, admin change, and change of who may do or use what:
who, from where, what, with what result. No secrets in it.

Lines go to the logger `ottla.audit`, and from there to the broker's log or to a file of their own (`audit_file.py`).
"""

from __future__ import annotations

import logging

from ottla.metadata.acls import Acl
from ottla.metadata.quotas import ClientQuota, Entity
from ottla.metadata.tokens import DelegationToken

log = logging.getLogger("ottla.audit")


def tell(what: str, principal: str | None, client_host: str, result: str = "success", /, **facts: object) -> None:
    """`principal` None is somebody who is not known."""
    log.info(what, extra={"principal": principal or "(unknown)", "client": client_host, "result": result, **facts})


def has_its_own_file() -> bool:
    """Else its lines are among those of the broker's log, which tell of changes anyway."""
    return not log.propagate


def acl(one: Acl) -> dict[str, object]:
    """An ACL as the facts of a line."""
    return {
        "permission": one.permission.name,
        "user": one.principal,
        "host": one.host,
        "operation": one.operation.name,
        "resource_type": one.resource_type.name,
        "pattern": one.pattern_type.name,
        "resource": one.resource_name,
    }


def quota(entity: Entity, now: ClientQuota | None) -> dict[str, object]:
    """The limits of an entity as the facts of a line; None: there are none any more."""
    limits = {} if now is None else now.values
    return {
        **{f"for_{kind}": name if name is not None else "(default)" for kind, name in entity},
        "limits": ", ".join(f"{key}={value:.15g}" for key, value in sorted(limits.items())) or "(none)",
    }


def token(one: DelegationToken) -> dict[str, object]:
    """Which token, and whose; what proves it is a secret."""
    return {"token_id": one.id, "owner": one.owner, "expires_ms": one.expires_ms}
