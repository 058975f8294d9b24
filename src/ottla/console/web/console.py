"""One console: its settings, the cluster as it was last seen, its visitors, and how its pages are rendered."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ottla.client.access.bearer import BearerLogin
from ottla.client.schema_registry import RegistryClient
from ottla.common.errors import OttlaError
from ottla.console.cluster.collecting import Collector
from ottla.console.cluster.link import Link
from ottla.console.cluster.metrics import Metrics
from ottla.console.cluster.snapshot import Snapshot
from ottla.console.connect_client import ConnectClient
from ottla.console.pipeline_files import PipelineStarter, files_of
from ottla.console.processes import Watches
from ottla.console.records.masking import Masks
from ottla.console.settings import ConsoleSettings
from ottla.console.web import charts, words
from ottla.console.web.navigation import NAVIGATION
from ottla.console.web.rights import ADMIN, Forbidden, why_not
from ottla.console.web.sessions import LoginLimit, Session, Sessions
from ottla.console.web.users import User, load_users
from ottla.spark.pipeline.home import data_folder

_HERE = Path(__file__).resolve().parent.parent
_JOURNAL_MAX = 500
_log = logging.getLogger("ottla.console")


@dataclass(frozen=True)
class Change:
    at_s: float
    user: str
    action: str
    what: str
    refusal: str | None


@dataclass(frozen=True)
class Visitor:
    """Whoever asks, and what they may."""

    session: Session
    role: str
    is_read_only: bool
    is_cluster_user: bool

    @property
    def name(self) -> str | None:
        return self.session.user

    def why_not(self, action: str) -> str | None:
        return why_not(action, self.role, is_read_only=self.is_read_only, is_cluster_user=self.is_cluster_user)

    def may(self, action: str) -> bool:
        return self.why_not(action) is None

    def require(self, action: str) -> None:
        if (reason := self.why_not(action)) is not None:
            raise Forbidden(reason)


class Console:
    def __init__(self, settings: ConsoleSettings) -> None:
        """Raises OttlaError for settings that cannot work."""
        self.settings = settings
        self.users: dict[str, User] = load_users(settings.users_file) if settings.users_file else {}
        self.masks = Masks.parse(settings.masks)
        self.link = Link(settings.client_settings())
        self.collector = Collector(self.link, settings.interval_s)
        self.metrics = Metrics(settings.metrics, settings.interval_s, ca=settings.metrics_ca)
        self.registry = _registry(settings)
        self.connect = [
            ConnectClient(url, ca=settings.connect_ca, certificate=settings.connect_certificate)
            for url in settings.connect
        ]
        self.processes = Watches(settings.client_settings(), settings.processes, settings.interval_s)
        self.sessions = Sessions()
        self.login_limit = LoginLimit()
        self.journal: deque[Change] = deque(maxlen=_JOURNAL_MAX)
        self.starter = _starter(settings)
        self.templates = _environment()

    @cached_property
    def version(self) -> str:
        """Of the style sheet and the script: browsers keep them until it changes."""
        files = sorted((_HERE / "static").iterdir())
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]

    def start(self) -> None:
        self.collector.start()
        self.metrics.start()
        self.processes.start()

    def stop(self) -> None:
        self.processes.stop()
        self.metrics.stop()
        self.collector.stop()
        self.link.close()

    # --- visitors

    def visitor(self, request: Request) -> Visitor:
        session: Session = request.state.session
        given = self.settings
        role = session.role if given.has_login else ADMIN
        return Visitor(session, role, given.is_read_only, given.has_sasl_login and session.link is not None)

    def link_of(self, visitor: Visitor) -> Link:
        """Of a user of the cluster their own: its ACLs decide."""
        return visitor.session.link or self.link

    def may_unmask(self, visitor: Visitor) -> bool:
        return visitor.session.may_unmask

    def note(self, visitor: Visitor, action: str, what: str, refusal: str | None = None) -> None:
        change = Change(time.time(), visitor.name or "anonymous", action, what, refusal)
        self.journal.appendleft(change)
        _log.info("%s: %s: %s%s", change.user, action, what, f" (refused: {refusal})" if refusal else "")

    # --- pages

    def seen(self) -> Snapshot:
        """The last snapshot. Raises OttlaError while there is none."""
        if self.collector.snapshot is None:
            self.collector.wait_first(10.0)
        if self.collector.snapshot is None:
            problem = self.collector.problem
            raise NotSeen(problem.sentence if problem else "the cluster has not answered yet: try again in a moment.")
        return self.collector.snapshot

    def page(self, request: Request, name: str, status: int = 200, **context: Any) -> Response:
        visitor = self.visitor(request)
        collector = self.collector
        theme = request.cookies.get("theme", "")
        shown = {
            "console": self,
            "settings": self.settings,
            "visitor": visitor,
            "csrf": visitor.session.csrf,
            "navigation": NAVIGATION,
            "path": request.url.path,
            "theme": theme if theme in ("dark", "light") else "",
            # A page that only refreshes itself, perhaps in another tab, is not the one that waits for them.
            "notices": [] if "x-refresh" in request.headers else _drained(visitor.session.notices),
            "problem": collector.problem,
            "snapshot": collector.snapshot,
            "query": dict(request.query_params),
            "link_with": _link_with(request),
            **context,
        }
        # Names and records may have half of a character in them, which is no text.
        return HTMLResponse(self.templates.get_template(name).render(shown).encode(errors="replace"), status)

    def fragment(self, name: str, **context: Any) -> str:
        return self.templates.get_template(name).render(context)


def _registry(given: ConsoleSettings) -> RegistryClient | None:
    if not given.registry:
        return None
    bearer = BearerLogin.load(given.registry_bearer) if given.registry_bearer else None
    return RegistryClient(given.registry, ca=given.registry_ca, certificate=given.registry_certificate, bearer=bearer)


def _starter(settings: ConsoleSettings) -> PipelineStarter | None:
    if settings.pipeline_files is None:
        return None
    files_of(settings.pipeline_files)
    client = {**settings.client, "bootstrap.servers": settings.bootstrap}
    return PipelineStarter(settings.pipeline_files, data_folder(settings.pipelines), client)


class NotSeen(OttlaError):
    """Nothing is known of the cluster yet."""


def console_of(request: Request) -> Console:
    found: Console = request.app.state.console
    return found


def _drained(notices: deque[tuple[str, str]]) -> list[tuple[str, str]]:
    taken = list(notices)
    notices.clear()
    return taken


def _link_with(request: Request) -> Callable[..., str]:
    """The same page with other parameters: what is empty is left out."""

    def link(**changes: object) -> str:
        merged = {**dict(request.query_params), **{name: str(value) for name, value in changes.items()}}
        kept = {name: value for name, value in merged.items() if value not in ("", "None")}
        return f"{request.url.path}?{urlencode(kept)}" if kept else request.url.path

    return link


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": words.count,
        "short": words.short,
        "rate": words.rate,
        "size": words.size,
        "byte_rate": words.byte_rate,
        "duration": words.duration,
        "milliseconds": words.milliseconds,
        "moment": words.moment,
        "ago": words.ago,
        "plural": words.plural,
        "path": lambda text: quote(str(text), safe=""),
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
    }
    environment.globals |= {
        "chart": charts.chart,
        "lines": charts.lines,
        "spark": charts.spark,
        "meter": charts.meter,
        "words": words,
        "setting_meaning": words.setting,
    }
    return environment
