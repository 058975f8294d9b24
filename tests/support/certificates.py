"""Certificates for a test: an authority of its own, and what it signs, as the PEM files that clients and brokers take.

certificates = Certificates(tmp_path)
certificates.ca                                  # what to trust
certificates.issue("localhost", "127.0.0.1")     # a key and its chain in one file
"""

from __future__ import annotations

import itertools
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

_NUMBERS = itertools.count(1)


class Certificates:
    def __init__(self, folder: Path) -> None:
        trustme = pytest.importorskip("trustme", reason="trustme is not installed: run `make setup`")
        self._authority = trustme.CA()
        self._folder = folder
        self.ca = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.ca))

    def issue(self, *names: str, password: str | None = None, is_expired: bool = False) -> Path:
        """For hosts, addresses or people. Keys are PKCS#8, the only form that Kafka reads."""
        from cryptography.hazmat.primitives import serialization

        end = datetime.now(UTC) + timedelta(days=-1 if is_expired else 1)
        issued = self._authority.issue_cert(*names, common_name=names[0], not_after=end)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        form = serialization.PrivateFormat.PKCS8
        text = key.private_bytes(serialization.Encoding.PEM, form, encryption)
        text += b"".join(one.bytes() for one in issued.cert_chain_pems)
        path = self._folder / f"{names[0]}-{next(_NUMBERS)}.pem"
        path.write_bytes(text)
        return path

    def server(self, identity: Path, *, asks_for_certificates: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity)
        if asks_for_certificates:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        return context
