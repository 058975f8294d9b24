"""SCRAM against the vector of RFC 7677, and against servers that do not play by its rules."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from ottla.client.access.scram import Scram, ScramError

NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
OUTCOME = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def exchange(mechanism: str = "SCRAM-SHA-256", username: str = "user") -> Scram:
    return Scram(mechanism, username, "pencil", NONCE)


def test_the_exchange_of_rfc_7677() -> None:
    scram = exchange()
    assert scram.first() == b"n,,n=user,r=" + NONCE.encode()
    assert scram.final(CHALLENGE) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    scram.check(OUTCOME)


def test_sha_512_as_a_server_computes_it() -> None:
    scram = exchange("SCRAM-SHA-512")
    scram.first()
    final = scram.final(CHALLENGE).decode()
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    spoken = b"n=user,r=" + NONCE.encode() + b"," + CHALLENGE + b"," + final.rpartition(",p=")[0].encode()
    stored = hashlib.sha512(hmac.digest(salted, b"Client Key", "sha512")).digest()
    proof = base64.b64decode(final.rpartition(",p=")[2])
    key = bytes(a ^ b for a, b in zip(proof, hmac.digest(stored, spoken, "sha512"), strict=True))
    assert hashlib.sha512(key).digest() == stored
    signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), spoken, "sha512")
    scram.check(b"v=" + base64.b64encode(signature))


def test_a_name_is_escaped_and_every_nonce_is_new() -> None:
    assert exchange(username="a=b,c,ä").first() == f"n,,n=a=3Db=2Cc=2Cä,r={NONCE}".encode()
    assert Scram("SCRAM-SHA-256", "user", "x").first() != Scram("SCRAM-SHA-256", "user", "x").first()


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        (CHALLENGE.replace(b"r=rO", b"r=xx"), "its nonce is not ours"),
        (b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "its nonce is not ours"),
        (CHALLENGE.replace(b"i=4096", b"i=1"), "it wants 1 iterations"),
        (CHALLENGE.replace(b"i=4096", b"i=999999999"), "it wants 999999999 iterations"),
        (CHALLENGE.replace(b"i=4096", b"i=99999999999999999999"), "no sensible number"),
        (CHALLENGE.replace(b"i=4096", b"i=-4096"), "no sensible number"),
        (CHALLENGE.replace(b",i=4096", b""), "no sensible number"),
        (CHALLENGE.replace(b"s=W", b"s=!"), "not of SCRAM"),
        (CHALLENGE.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s="), "no salt"),
        (b"m=must," + CHALLENGE, "an extension that nobody knows"),
        (b"e=unknown-user", "it says unknown-user"),
        (b"", "not of SCRAM"),
        (b"\xff\xfe", "not of SCRAM"),
    ],
)
def test_a_challenge_that_is_wrong_gets_no_proof(challenge: bytes, words: str) -> None:
    scram = exchange()
    scram.first()
    with pytest.raises(ScramError, match=words):
        scram.final(challenge)


@pytest.mark.parametrize("outcome", [b"v=" + base64.b64encode(b"x" * 32), b"v=", b"", b"e=invalid-proof", b"v=!"])
def test_a_server_that_does_not_know_the_password_is_not_believed(outcome: bytes) -> None:
    scram = exchange()
    scram.final(CHALLENGE)
    with pytest.raises(ScramError):
        scram.check(outcome)


def test_an_outcome_before_the_challenge_is_not_believed() -> None:
    with pytest.raises(ScramError):
        exchange().check(b"v=")
