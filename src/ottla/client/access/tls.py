"""A socket made secure, and what went wrong when it could not be, in a sentence that names the setting to change."""

from __future__ import annotations

import os
import re
import socket
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path

from ottla.client.access.security import AccessRefused, Tls

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_HOW_TO_TRUST = "name its CA with ssl.truststore.location and ssl.truststore.type PEM, or with ssl.ca.location"
# OpenSSL's numbers of what is wrong with a certificate.
_EXPIRED, _NOT_YET_VALID = 10, 9
_OTHER_NAME = (62, 64)
_UNKNOWN_ISSUER = (2, 18, 19, 20, 21)
# Alerts by which a server says that it wants to know who we are.
_ABOUT_OUR_CERTIFICATE = re.compile(r"ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA|ACCESS)")


def secured(plain: socket.socket, tls: Tls, host: str) -> ssl.SSLSocket:
    """Raises OSError, of which `refusal` knows some, and AccessRefused for files that cannot be used."""
    return context_of(tls).wrap_socket(plain, server_hostname=host)


def context_of(tls: Tls) -> ssl.SSLContext:
    """Kept, since to load the system's authorities takes longer than a handshake. Files that were renewed are read
    again."""
    files = tuple(path for path in (tls.ca_location, tls.certificate_location, tls.key_location) if path is not None)
    return _context(tls, tuple(_changed_ns(path) for path in files))


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError as error:
        raise AccessRefused(f"the file {path} of the ssl settings cannot be read here: {error.strerror}.") from None


@lru_cache(maxsize=16)
def _context(tls: Tls, _file_times: tuple[int, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # In this order: a name cannot be checked in a certificate that is not.
    context.check_hostname = tls.checks_host_name
    context.verify_mode = ssl.CERT_REQUIRED if tls.checks_certificate else ssl.CERT_NONE
    context.minimum_version, context.maximum_version = _VERSIONS[tls.versions[0]], _VERSIONS[tls.versions[-1]]
    # As in Java, whatever is in the store is trusted: it need not be the root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _load_authorities(context, tls)
    _load_identity(context, tls)
    return context


def _load_authorities(context: ssl.SSLContext, tls: Tls) -> None:
    if tls.ca_pem is None and tls.ca_location is None:
        context.load_default_certs()
        return
    try:
        if tls.ca_pem is not None:
            context.load_verify_locations(cadata=tls.ca_pem)
        elif tls.ca_location is not None and os.path.isdir(tls.ca_location):
            context.load_verify_locations(capath=tls.ca_location)
        else:
            context.load_verify_locations(cafile=tls.ca_location)
    except OSError as error:  # ssl.SSLError is one
        where = tls.ca_location or "ssl.truststore.certificates"
        raise AccessRefused(f"{where} has no certificates that can be read as PEM: {_reason(error)}.") from None


def _load_identity(context: ssl.SSLContext, tls: Tls) -> None:
    # An empty password, where there is none, keeps OpenSSL from asking for one at the terminal.
    password = tls.key_password or ""
    try:
        if tls.identity_pem is not None:
            with tempfile.TemporaryDirectory(prefix="ottla-tls-") as folder:  # readable for this user only
                file = Path(folder, "identity.pem")
                file.write_text(tls.identity_pem)
                context.load_cert_chain(file, password=password)
        elif tls.certificate_location is not None:
            context.load_cert_chain(tls.certificate_location, tls.key_location, password)
    except OSError as error:
        where = tls.key_location or tls.certificate_location or "ssl.keystore.key"
        raise AccessRefused(
            f"the key or certificate of this client in {where} cannot be used ({_reason(error)}): it must be PEM, the "
            "key must belong to the certificate, and ssl.key.password is needed if it is encrypted."
        ) from None


def refusal(error: OSError, address: str) -> AccessRefused | None:
    """Why the two sides do not trust one another, if that is what `error` says."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return AccessRefused(_distrust(error, address))
    if not isinstance(error, ssl.SSLError) or not error.reason:
        return None
    if _ABOUT_OUR_CERTIFICATE.search(error.reason):
        return AccessRefused(
            f"the broker at {address} does not accept the certificate of this client, or wants one ({_reason(error)}): "
            "see ssl.keystore.location and ssl.keystore.type PEM, or ssl.certificate.location and ssl.key.location."
        )
    if "ALERT" in error.reason or "UNSUPPORTED_PROTOCOL" in error.reason:
        return AccessRefused(
            f"the broker at {address} and this client found no TLS that both speak ({_reason(error)}): see "
            "ssl.enabled.protocols here and on the broker."
        )
    return None


def _distrust(error: ssl.SSLCertVerificationError, address: str) -> str:
    code, message = error.verify_code, error.verify_message.rstrip(".")
    if code in _OTHER_NAME:
        return (
            f"the certificate of the broker at {address} is for another host ({message}): use a name that it has, or "
            "set ssl.endpoint.identification.algorithm to nothing."
        )
    if code in _UNKNOWN_ISSUER:
        return f"the certificate of the broker at {address} is from nobody we trust ({message}): {_HOW_TO_TRUST}."
    if code == _EXPIRED:
        return f"the certificate of the broker at {address} has expired: renew it."
    if code == _NOT_YET_VALID:
        return f"the certificate of the broker at {address} is not valid yet: are the clocks right?"
    return f"the certificate of the broker at {address} is not accepted: {message}."


def _reason(error: OSError) -> str:
    """OpenSSL's words, without its decoration."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error.args[-1])).replace("_", " ").lower()
    return error.strerror or type(error).__name__
