"""Users who log in by SCRAM, who may do what, and how much clients may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ottla.client.admin.acls import create_acls, delete_acls, describe_acls
from ottla.client.admin.quotas import Quota, alter_quotas, describe_quotas
from ottla.client.admin.users import delete_user, describe_users, set_password
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, change, page
from ottla.console.web.listing import listing
from ottla.console.web.requests import Form
from ottla.console.web.routing import Route
from ottla.console.web.words import byte_rate
from ottla.metadata.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

T = TypeVar("T")

_ITERATIONS = 4096
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
ENTITIES = ("user", "client-id", "ip")


def access(console: Console, request: Request) -> Response:
    problems: dict[str, str] = {}
    visitor = console.visitor(request)

    def asked(what: str, ask: Callable[[ClusterClient], T], otherwise: T) -> T:
        try:
            with console.link_of(visitor).borrowed() as cluster:
                return ask(cluster)
        except (OttlaError, OSError) as error:
            problems[what] = str(error)
            return otherwise

    users: dict[str, dict[str, int]] = asked("users", describe_users, {})
    acls: list[Acl] = asked("acls", lambda cluster: describe_acls(cluster, AclFilter()), [])
    quotas: list[Quota] = asked("quotas", lambda cluster: describe_quotas(cluster, {}, others=True), [])
    found = listing(
        request,
        acls,
        lambda acl: f"{acl.principal} {acl.resource_type.name} {acl.resource_name} {acl.operation.name}",
        {"principal": lambda acl: acl.principal, "resource": lambda acl: (acl.resource_type.name, acl.resource_name)},
        "principal",
    )
    return console.page(
        request,
        "access.html",
        users=users,
        listing=found,
        quotas=quotas,
        problems=problems,
        mechanisms=MECHANISMS,
        resource_types=[one.name for one in ResourceType if one > ResourceType.ANY],
        operations=[one.name for one in Operation if one > Operation.ANY],
        quota_names=QUOTAS,
        quota_meaning=_meaning,
        entities=ENTITIES,
        acl_text=acl_text,
    )


def set_user(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    name, password, mechanism = form.stripped("user"), form.text("password"), form.text("mechanism")
    if not name or not password or mechanism not in MECHANISMS:
        raise OttlaError("a user has a name, a password and a mechanism.")
    with console.link_of(visitor).borrowed() as cluster:
        set_password(cluster, name, password, {mechanism: _ITERATIONS})
    return Done(f"User {name} can log in with {mechanism}.")


def remove_user(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    name = form.stripped("user")
    with console.link_of(visitor).borrowed() as cluster:
        known = describe_users(cluster, [name]).get(name)
        if known is None:
            raise OttlaError(f"there is no user '{name}'.")
        delete_user(cluster, name, known)
    return Done(f"User {name} cannot log in any more; connections that are open stay open.")


def acl_text(acl: Acl) -> str:
    """As a form carries it."""
    parts: list[Any] = [acl.resource_type, acl.pattern_type, acl.operation, acl.permission]
    return "|".join([*(str(int(part)) for part in parts), acl.host, acl.principal, acl.resource_name])


def _acl_of(text: str) -> Acl:
    parts = text.split("|", 6)
    try:
        kind, pattern, operation, permission = (int(part) for part in parts[:4])
        return Acl(
            ResourceType(kind),
            parts[6],
            PatternType(pattern),
            parts[5],
            parts[4],
            Operation(operation),
            Permission(permission),
        )
    except (ValueError, IndexError):
        raise OttlaError("that ACL cannot be read: open the page again.") from None


def add_acl(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    principal, name = form.stripped("principal"), form.stripped("name")
    principal = principal if ":" in principal else f"User:{principal}"
    try:
        kind = ResourceType[form.text("type")]
        acl = Acl(
            kind,
            "kafka-cluster" if kind is ResourceType.CLUSTER else name,
            PatternType[form.text("pattern", "LITERAL")],
            principal,
            form.stripped("host") or "*",
            Operation[form.text("operation")],
            Permission[form.text("permission", "ALLOW")],
        )
    except KeyError as error:
        raise OttlaError(f"there is no {error} in ACLs.") from None
    if not acl.resource_name or principal == "User:":
        raise OttlaError("an ACL needs whom it is for and a resource; * means all of them.")
    with console.link_of(visitor).borrowed() as cluster:
        create_acls(cluster, [acl])
    return Done(f"{acl.principal}: {acl.permission.name} {acl.operation.name} on {kind.name} {acl.resource_name}.")


def remove_acl(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    acl = _acl_of(form.text("acl"))
    with console.link_of(visitor).borrowed() as cluster:
        removed = delete_acls(cluster, [acl])
    if not removed:
        raise OttlaError("that ACL was not there any more.")
    return Done(f"Removed: {acl.principal} {acl.permission.name} {acl.operation.name} on {acl.resource_name}.")


def _meaning(key: str, value: float) -> str:
    """What the number of a quota means."""
    if key.endswith("byte_rate"):
        return byte_rate(value)
    return f"{value:.15g} % of a thread" if key == "request_percentage" else f"{value:.15g}/s"


def set_quota(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    kind, name, key = form.text("kind"), form.stripped("name"), form.text("quota")
    if kind not in ENTITIES or key not in QUOTAS:
        raise OttlaError("a quota is for a user, client-id or ip, and one of " + ", ".join(QUOTAS) + ".")
    value = form.stripped("value")
    number: float | None = None
    if value and not form.has("remove"):
        try:
            number = float(value)
        except ValueError:
            raise OttlaError(f"a quota is a number, not '{value[:20]}'.") from None
    entity: dict[str, str | None] = {kind: name or None}
    with console.link_of(visitor).borrowed() as cluster:
        alter_quotas(cluster, entity, {key: number}, validate_only=False)
    who = f"{kind} {name}" if name else f"each {kind} without one of its own"
    return Done(f"{key} of {who} is {'removed' if number is None else f'{number:.15g}'}.")


routes = [
    Route("/access", page(access)),
    Route("/access/users", change("change users", set_user), methods=["POST"]),
    Route("/access/users/delete", change("change users", remove_user), methods=["POST"]),
    Route("/access/acls", change("change ACLs", add_acl), methods=["POST"]),
    Route("/access/acls/delete", change("change ACLs", remove_acl), methods=["POST"]),
    Route("/access/quotas", change("change quotas", set_quota), methods=["POST"]),
]
