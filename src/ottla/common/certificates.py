"""A certificate authority of one's own, and what it signs: PEM in, PEM out. Keys are of the curve P-256, in PKCS#8,
which OpenSSL, Java, Go and Node all read."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ottla.common.errors import OttlaError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise OttlaError(
        "certificates are made with the package cryptography: install it with pip install 'ottla[security]'."
    ) from None

# Clocks of other machines may be a little behind.
_BEFORE = timedelta(minutes=10)


@dataclass(frozen=True)
class Issued:
    key_pem: bytes
    certificate_pem: bytes

    @property
    def pem(self) -> str:
        """Both in one file, as brokers and Java's clients take them."""
        return (self.key_pem + self.certificate_pem).decode()


class Authority:
    def __init__(self, issued: Issued) -> None:
        self.issued = issued
        self._key = serialization.load_pem_private_key(issued.key_pem, None)
        self._certificate = x509.load_pem_x509_certificate(issued.certificate_pem)

    @classmethod
    def new(cls, name: str, days: int) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        # Two authorities of one name, while one replaces the other, would be taken for one another.
        own_name = f"{name} {secrets.token_hex(4)}"
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, own_name)])
        usage = _usage(key_cert_sign=True, crl_sign=True)
        builder = (
            _builder(subject, subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        certificate = builder.sign(key, hashes.SHA256())
        return cls(Issued(_pem_of(key), certificate.public_bytes(serialization.Encoding.PEM)))

    def issue(self, name: str, days: int, *, unit: str | None = None, hosts: Sequence[str] = ()) -> Issued:
        """For a host, if `hosts` names where it is found, and for a client: brokers are both."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())  # type: ignore[arg-type]
        builder = (
            _builder(subject, self._certificate.subject, key.public_key(), days)
            .add_extension(issuer, critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())  # type: ignore[arg-type]
        return Issued(_pem_of(key), certificate.public_bytes(serialization.Encoding.PEM))


def expires(pem: str) -> datetime:
    """When the first certificate in it does. Raises ValueError."""
    return x509.load_pem_x509_certificates(pem.encode())[0].not_valid_after_utc


def certificates_in(pem: str) -> list[str]:
    found = x509.load_pem_x509_certificates(pem.encode())
    return [certificate.public_bytes(serialization.Encoding.PEM).decode() for certificate in found]


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
