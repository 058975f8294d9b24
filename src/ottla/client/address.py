"""Where a cluster is and how one gets in: all that a connection to it takes."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.client.access.security import PLAIN_TEXT, Security


@dataclass(frozen=True)
class ClusterAddress:
    """Pickled to executors."""

    servers: str
    security: Security = PLAIN_TEXT
