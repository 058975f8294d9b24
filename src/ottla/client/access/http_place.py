"""Where a service answers over HTTP, and what logs in there: a registry, Kafka Connect, a broker's metrics.

`https://user:password@host:port` is an address with its login. `url` is the address without it, which alone may be
shown and logged; what logs in goes in `headers`.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, build_opener

from ottla.client.access.redirects import NoRedirects
from ottla.common.errors import OttlaError


@dataclass(frozen=True)
class HttpPlace:
    url: str
    # With its question mark; it may have a token in it.
    query: str
    headers: Mapping[str, str]
    opener: OpenerDirector

    @property
    def has_login(self) -> bool:
        return bool(self.headers)


def http_place(
    text: str, *, what: str, example: str, ca: str | None = None, certificate: str | None = None
) -> HttpPlace:
    """`ca` and `certificate` are PEM files: whom to trust, and a certificate with its key that logs in. `what` it is
    an address of, in words. Raises OttlaError, in which no password is."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, as a password looks that was not written with %23 for its #
        is_address = False
    if not is_address:
        raise OttlaError(f"'{without_login(text)}' is no address of {what}: write it as {example}.")
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    headers = {} if parts.username is None else _basic(unquote(parts.username), unquote(parts.password or ""))
    context = _trusting(ca) if parts.scheme == "https" else None
    if certificate is not None:
        _show(certificate, context)
    query = f"?{parts.query}" if parts.query else ""
    return HttpPlace(url, query, headers, build_opener(ProxyHandler({}), HTTPSHandler(context=context), NoRedirects()))


def without_login(text: str) -> str:
    """Of what may be an address, also one that was written wrong."""
    scheme, mark, rest = text.rpartition("://")
    return scheme + mark + rest.rpartition("@")[2]


def reason_of(error: BaseException, ca_option: str) -> str:
    """Why nobody answered, and what to do if it is the certificate."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}; {ca_option} FILE says whom to trust"
    if isinstance(reason, ssl.SSLError):
        return f"no TLS: {reason.reason or reason}"
    # The system's words alone: its number tells people nothing.
    return getattr(reason, "strerror", None) or str(reason)


def _basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def _trusting(ca: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise OttlaError(f"{ca} has no certificates that can be read as PEM: {error}.") from None


def _show(certificate: str, context: ssl.SSLContext | None) -> None:
    if context is None:
        raise OttlaError("a certificate is shown over https only: write the address so.")
    try:
        context.load_cert_chain(certificate)
    except OSError as error:
        raise OttlaError(f"{certificate} is no PEM file with a certificate and its key: {error}.") from None
