"""The authorizer of a broker, kept in step with the image, and whoever asks it.

A broker without `authorizer.class.name` has none (`broker.access` is None), and nothing is asked anywhere.
"""

from __future__ import annotations

from ottla.broker import audit
from ottla.broker.context import RequestContext
from ottla.common.config import BrokerConfig
from ottla.common.config.security import super_users_of
from ottla.metadata.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.metadata.image import ClusterImage
from ottla.security.authorizer import Authorizer

# Denials that are told of, once each, until an ACL changes. Names are the client's choice: what is kept and written of
# one is no longer than the name of a topic.
_TOLD_MAX = 10_000
_TOLD_NAME_MAX = 256
# Who may send which requests; each keeps a layout alive, of a kilobyte or so.
_WRITERS_MAX = 10_000


class Access:
    def __init__(self, config: BrokerConfig) -> None:
        self._super_users = super_users_of(config.super_users)
        self._allows_without_acl = config.allow_everyone_if_no_acl_found
        self._image: ClusterImage | None = None
        self._told: set[tuple[str, str, Operation, ResourceType, str]] = set()
        self.authorizer = Authorizer()
        # Produce requests by their layout, principal and address that were allowed, until an ACL changes. To ask the
        # authorizer each time costs a tenth of what such a request takes. Super users are those of the start, a
        # layout's name and transaction are its bytes, and an id never becomes that of another topic.
        self.writers: set[tuple[object, str, str]] = set()

    def on_image(self, _: ClusterImage, image: ClusterImage) -> None:
        if self._image is None or image.acls is not self._image.acls:
            self.authorizer = Authorizer(
                image.acls.values(), super_users=self._super_users, allows_without_acl=self._allows_without_acl
            )
            self._told.clear()
            self.writers.clear()
        self._image = image

    def of(self, context: RequestContext) -> Asker:
        return Asker(self, context.principal, context.client_host)

    def remember_writer(self, layout: object, principal: str, host: str) -> None:
        if len(self.writers) >= _WRITERS_MAX:
            self.writers.clear()
        self.writers.add((layout, principal, host))

    def denied(self, question: tuple[str, str, Operation, ResourceType, str]) -> None:
        principal, host, operation, kind, name = question
        if len(name) > _TOLD_NAME_MAX:
            name = f"{name[:_TOLD_NAME_MAX]}..."
            question = principal, host, operation, kind, name
        if question in self._told:
            return
        if len(self._told) >= _TOLD_MAX:
            self._told.clear()
        self._told.add(question)
        facts = {"operation": operation.name, "resource_type": kind.name, "resource": name}
        audit.tell("denied", principal, host, "denied", **facts)


class Asker:
    """Who asks, from where: taken from a request, and good for as long as it is worked on."""

    __slots__ = ("_access", "host", "principal")

    def __init__(self, access: Access, principal: str, host: str) -> None:
        self._access = access
        self.principal = principal
        self.host = host

    def may(self, operation: Operation, kind: ResourceType, name: str, *, tells: bool = True) -> bool:
        if self._access.authorizer.allows(self.principal, self.host, operation, kind, name):
            return True
        if tells:
            self._access.denied((self.principal, self.host, operation, kind, name))
        return False

    def may_cluster(self, operation: Operation, *, tells: bool = True) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, tells=tells)

    def may_topic(self, operation: Operation, name: str, *, tells: bool = True) -> bool:
        return self.may(operation, ResourceType.TOPIC, name, tells=tells)

    def may_on_any(self, operation: Operation, kind: ResourceType) -> bool:
        return self._access.authorizer.allows_on_any(self.principal, self.host, operation, kind)

    def operations(self, kind: ResourceType, name: str, possible: int) -> int:
        """Of the operations that a resource knows those that are allowed, as a bit field."""
        return sum(
            1 << operation
            for operation in Operation
            if possible >> operation & 1 and self.may(operation, kind, name, tells=False)
        )
