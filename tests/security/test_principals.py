"""From a certificate to a principal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ottla.common.errors import OttlaError
from ottla.security.distinguished_name import subject_of
from ottla.security.principal_rules import NoPrincipal, parse_rules


def certificate(*attributes: tuple[x509.ObjectIdentifier, str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def test_a_subject_is_written_as_java_writes_it() -> None:
    plain = certificate((NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "Ex"), (NameOID.COMMON_NAME, "ada"))
    assert subject_of(plain) == "CN=ada,O=Ex,C=DE"
    odd = certificate((NameOID.COMMON_NAME, 'a,b+c"d\\e'), (NameOID.ORGANIZATIONAL_UNIT_NAME, " x "))
    assert subject_of(odd) == 'OU=\\ x\\ ,CN=a\\,b\\+c\\"d\\\\e'
    mail = certificate((NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "ü"))
    assert subject_of(mail) == "CN=ü,1.2.840.113549.1.9.1=#1603614062"


def test_what_is_no_certificate_is_refused() -> None:
    whole = certificate((NameOID.COMMON_NAME, "ada"))
    for data in (b"", b"\x30", whole[:20], b"\x30\x84\xff\xff\xff\xff"):
        with pytest.raises((ValueError, IndexError)):
            subject_of(data)


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", "CN=ada,O=Ex", "CN=ada,O=Ex"),
        ("", "CN=ada", "CN=ada"),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT", "CN=svc,OU=ServiceUsers,O=x", "svc"),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT", "CN=ada,OU=people", "CN=ada,OU=people"),
        (r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),.*$/$1@$2/L", "CN=Ada,OU=Ops,O=Ex,C=DE", "ada@ops"),
        (r"RULE:^cn=([^,]+).*$/$1/U, DEFAULT", "cn=ada,x", "ADA"),
    ],
)
def test_rules_make_a_user_of_a_name(rules: str, name: str, user: str) -> None:
    assert parse_rules(rules)(name) == user


def test_a_name_that_no_rule_is_for_is_nobody() -> None:
    with pytest.raises(NoPrincipal):
        parse_rules(r"RULE:^CN=(.*)$/$1/")("O=x")


@pytest.mark.parametrize("rules", ["RULE:^CN=(.*)$", "RULE:(/$1/", "RULE:^CN=.*$/$1/", "NONSENSE"])
def test_rules_that_cannot_be_read_are_told_in_a_sentence(rules: str) -> None:
    with pytest.raises(OttlaError, match=r"ssl\.principal\.mapping\.rules"):
        parse_rules(rules)
