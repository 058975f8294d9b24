"""Topic and group names for shell completion: asked of the cluster, quickly, and silently empty when that fails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from ottla.cli.settings import Settings

COMPLETION_S_MAX = 1.5


def complete_topic(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _starting_with(incomplete, _ask(ctx, lambda admin: admin.list_topics(timeout=COMPLETION_S_MAX).topics))


def complete_group(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    def groups(admin: Any) -> Iterable[str]:
        listed = admin.list_consumer_groups(request_timeout=COMPLETION_S_MAX).result(COMPLETION_S_MAX)
        return (group.group_id for group in listed.valid)

    return _starting_with(incomplete, _ask(ctx, groups))


def _ask(ctx: click.Context, question: Any) -> Iterable[str]:
    try:
        from ottla.cli.connection import Cluster

        return list(question(Cluster(ctx.find_object(Settings) or Settings()).admin))
    except Exception:  # a completion that fails must not disturb the prompt
        return []


def _starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
