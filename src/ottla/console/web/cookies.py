"""The cookie that names a session."""

from __future__ import annotations

from ottla.console.web.console import Console
from ottla.console.web.sessions import Session


def cookie_name(console: Console) -> str:
    """The prefix makes browsers take it from nobody else, where the connection is secure."""
    return "__Host-ottla" if console.settings.certificate else f"ottla-{console.settings.port}"


def cookie(console: Console, session: Session) -> str:
    secure = "; Secure" if console.settings.certificate else ""
    return f"{cookie_name(console)}={session.id}; Path=/; HttpOnly; SameSite=Lax{secure}"
