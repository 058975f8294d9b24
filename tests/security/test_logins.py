"""The broker's side of PLAIN and SCRAM, message by message: what an onlooker and a guesser can learn from it."""

from __future__ import annotations

import base64
import hmac
from typing import Any

import pytest

from ottla.metadata.scram import ScramCredential, credential_of, salted
from ottla.security import logins
from ottla.security.logins import LoginRefused, PlainExchange, ScramExchange, Shape

MECHANISM = "SCRAM-SHA-256"
NAMES = [f"user{number}" for number in range(100)]


def challenge(name: str, shapes: tuple[Shape, ...], decoy: bytes = b"decoy") -> tuple[bytes, int]:
    """Salt and iterations that a client of an unknown name sees."""
    exchange = ScramExchange(MECHANISM, lambda _: None, nonce="ours", decoy=decoy, shapes=shapes)
    fields = dict(part.split("=", 1) for part in exchange.answer(f"n,,n={name},r=theirs".encode()).decode().split(","))
    return base64.b64decode(fields["s"]), int(fields["i"])


class TestMadeUpUsers:
    def test_they_look_like_those_who_exist(self) -> None:
        seen = {(len(salt), iterations) for salt, iterations in (challenge(name, (Shape(33, 8192),)) for name in NAMES)}
        assert seen == {(33, 8192)}

    def test_a_salt_of_letters_is_met_by_salts_of_letters(self) -> None:
        """Java's admin clients make salts of digits and small letters."""
        shape = Shape.of(ScramCredential(b"1xy2ko9qhmkw4mme", b"k", b"k", 4096))
        assert shape == Shape(16, 4096, is_text=True)
        salts = [challenge(name, (shape,))[0] for name in NAMES]
        assert all(salt.isalnum() and salt == salt.lower() and len(salt) == 16 for salt in salts)
        assert len(set(salts)) == len(salts)

    def test_each_has_one_of_the_shapes_there_are_and_keeps_it(self) -> None:
        shapes = Shape(24, 4096), Shape(24, 8192), Shape(16, 4096, is_text=True)
        before = {name: challenge(name, shapes) for name in NAMES}
        assert {(len(salt), iterations) for salt, iterations in before.values()} == {shape[:2] for shape in shapes}
        assert before == {name: challenge(name, shapes) for name in NAMES}
        after = {name: challenge(name, (*shapes, Shape(20, 4096))) for name in NAMES}
        assert sum(before[name] == after[name] for name in NAMES) > len(NAMES) // 2, "one more shape changes few"

    def test_nobody_logs_in_as_one_of_them(self) -> None:
        """Not even who has guessed the key that was made up."""
        exchange = ScramExchange(MECHANISM, lambda _: None, nonce="ours", decoy=b"decoy")
        exchange.answer(b"n,,n=nobody,r=theirs")
        with pytest.raises(LoginRefused):
            exchange.answer(b"c=biws,r=theirsours,p=" + base64.b64encode(bytes(32)))
        assert exchange.user is None and exchange.claimed == "nobody"


def known() -> ScramCredential:
    return credential_of(MECHANISM, salted(MECHANISM, "secret", b"salt", 4096), b"salt", 4096)


def proof(password: str, spoken_before: str, without_proof: str) -> bytes:
    key = hmac.digest(salted(MECHANISM, password, b"salt", 4096), b"Client Key", "sha256")
    stored = logins.hashlib.sha256(key).digest()
    signature = hmac.digest(stored, f"{spoken_before},{without_proof}".encode(), "sha256")
    answer = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    return f"{without_proof},p={answer}".encode()


@pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=ada,", "y,a=ada,"])
def test_the_header_that_a_client_began_with_is_what_it_has_to_repeat(header: str) -> None:
    """RFC 5802: `c=` is the header of the first message, in base 64, whichever that was."""
    repeated = base64.b64encode(header.encode()).decode()
    for said, is_let_in in ((repeated, True), (base64.b64encode(b"p=tls-unique,,").decode(), False)):
        exchange = ScramExchange(MECHANISM, lambda _: known(), nonce="ours", decoy=b"decoy")
        told = exchange.answer(f"{header}n=ada,r=theirs".encode()).decode()
        last = proof("secret", f"n=ada,r=theirs,{told}", f"c={said},r=theirsours")
        if is_let_in:
            exchange.answer(last)
            assert exchange.user == "ada"
        else:
            with pytest.raises(LoginRefused):
                exchange.answer(last)


@pytest.mark.parametrize("password", ["s", "secret", "secret" * 1000])
@pytest.mark.parametrize("user", ["ada", "nobody"])
def test_a_password_is_compared_in_the_same_time_whatever_its_length(
    user: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def counting(one: Any, other: Any) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr(logins.hmac, "compare_digest", counting)
    exchange = PlainExchange({"ada": "secret"})
    try:
        exchange.answer(f"\0{user}\0{password}".encode())
    except LoginRefused:
        assert (user, password) != ("ada", "secret")
    assert compared == [(32, 32)]
    assert exchange.claimed == user and exchange.user == ("ada" if (user, password) == ("ada", "secret") else None)


@pytest.mark.parametrize(
    ("nonce", "is_let_in"),
    [
        ("theirsours", True),
        ("theirstheirsours", True),  # librdkafka before 2.6.1
        ("theirs", False),
        ("ours", False),
        ("theirstheirs", False),
        ("", False),
        ("theirsoursours", False),
        ("theirsanothers", False),
        ("theirstheirstheirsours", False),
    ],
)
def test_what_is_signed_has_our_part_of_the_nonce_in_it(nonce: str, is_let_in: bool) -> None:
    exchange = ScramExchange(MECHANISM, lambda _: known(), nonce="ours", decoy=b"decoy")
    told = exchange.answer(b"n,,n=ada,r=theirs").decode()
    last = proof("secret", f"n=ada,r=theirs,{told}", f"c=biws,r={nonce}")
    if is_let_in:
        exchange.answer(last)
        assert exchange.user == "ada"
    else:
        with pytest.raises(LoginRefused):
            exchange.answer(last)
        assert exchange.user is None
