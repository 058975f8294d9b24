"""Stores of keys and certificates by Java's settings: PEM files are read, for others there is a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePath

from ottla.common.errors import OttlaError


def pem_store(given: Mapping[str, str], which: str) -> str | None:
    """A store that is a PEM file; for others the command that makes one."""
    location = given.get(f"ssl.{which}.location", "").strip()
    if not location:
        return None
    kind = given.get(f"ssl.{which}.type", "").strip().upper() or _kind_by_name(location)
    if kind == "PEM":
        return location
    raise OttlaError(
        f"ssl.{which}.location is a store of type {kind}, which is Java's: make a PEM file of it with "
        f"`{_conversion(which, kind, location)}`, name that one, and set ssl.{which}.type to PEM."
    )


def _kind_by_name(location: str) -> str:
    kinds = {".pem": "PEM", ".crt": "PEM", ".cer": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12"}
    return kinds.get(PurePath(location).suffix.lower(), "JKS")  # Java's default


def _conversion(which: str, kind: str, location: str) -> str:
    source, target, between = (shlex.quote(location + ending) for ending in ("", ".pem", ".p12"))
    if which == "truststore":
        return f"keytool -list -rfc -storetype {kind} -keystore {source} > {target}"
    if kind == "PKCS12":
        return f"openssl pkcs12 -in {source} -out {target}"
    return (
        f"keytool -importkeystore -srckeystore {source} -srcstoretype {kind} -destkeystore {between} "
        f"-deststoretype PKCS12 && openssl pkcs12 -in {between} -out {target}"
    )
