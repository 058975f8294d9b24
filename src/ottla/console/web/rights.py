"""Who may do what. A viewer looks, an editor does the daily work, an admin may also do what cannot be undone."""

from __future__ import annotations

from ottla.common.errors import OttlaError

VIEWER, EDITOR, ADMIN = "viewer", "editor", "admin"
ROLES = (VIEWER, EDITOR, ADMIN)

# What each change takes. Those of the cluster it decides about itself when users log in with its own passwords.
OF_THE_CLUSTER = {
    "create a topic": EDITOR,
    "change settings of a topic": EDITOR,
    "add partitions": EDITOR,
    "produce records": EDITOR,
    "move offsets of a group": EDITOR,
    "trim a topic": ADMIN,
    "delete a topic": ADMIN,
    "delete a group": ADMIN,
    "move partitions": ADMIN,
    "elect leaders": ADMIN,
    "abort a transaction": ADMIN,
    "change users": ADMIN,
    "change ACLs": ADMIN,
    "change quotas": ADMIN,
    "change settings of a broker": ADMIN,
}
OF_OTHERS = {
    "control connectors": EDITOR,
    "change schemas": EDITOR,
    # A connector reads and writes files and databases, a pipeline runs code: with the rights of whoever started them.
    "change connectors": ADMIN,
    "start pipelines": ADMIN,
    "stop pipelines": ADMIN,
}
NEEDED = OF_THE_CLUSTER | OF_OTHERS


class Forbidden(OttlaError):
    """Says who could do it."""


def why_not(action: str, role: str, *, is_read_only: bool, is_cluster_user: bool) -> str | None:
    """The reason in words, or None if it is allowed."""
    if is_read_only:
        return f"This console is read-only (--read-only), so it cannot {action}."
    if is_cluster_user and action in OF_THE_CLUSTER:
        return None
    needed = NEEDED[action]
    if ROLES.index(role) >= ROLES.index(needed):
        return None
    you = f"a{'n' if role[0] in 'ae' else ''} {role}"
    return f"You are {you}; to {action} takes an {needed}. Ask whoever runs this console."
