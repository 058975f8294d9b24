"""The broker's side of PLAIN and SCRAM: what the client says in, what we answer out.

    exchange = ScramExchange("SCRAM-SHA-256", find, nonce=..., decoy=...)
    exchange.answer(first)       # b"r=...,s=...,i=..."
    exchange.answer(final)       # b"v=...", and exchange.user is who it is

Whoever does not exist is led on with a made-up salt, always the same for a name, and refused where a wrong password
is: nobody learns from us which users there are. As in Kafka, names and passwords are UTF-8 without SASLprep.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.metadata.scram import HASHES, ITERATIONS_MIN, ScramCredential

# What Java's clients say whatever header they began with: "n,," in base 64.
_CHANNEL_BINDING = "biws"
_NAME_BYTES_MAX = 1024
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
# The extension with which a client says that its name is the id of a delegation token (KIP-48).
_WITH_TOKEN = "tokenauth=true"
_ACTS_FOR_ANOTHER = "Authentication failed: Client requested an authorization id that is different from username"


class TokenLogin(NamedTuple):
    """Who logs in with a delegation token, and how long that is good for."""

    credential: ScramCredential
    owner: str
    expires_ms: int


class Shape(NamedTuple):
    """What anybody can see of a user's credential: what is made up for others must look like it."""

    salt_bytes: int
    iterations: int
    # Java's admin clients make salts of digits and small letters.
    is_text: bool = False

    @classmethod
    def of(cls, credential: ScramCredential) -> Shape:
        is_text = credential.salt.isalnum() and credential.salt == credential.salt.lower()
        return cls(len(credential.salt), credential.iterations, is_text)


# That of users whom our own tools have made.
USUAL_SHAPE = Shape(24, ITERATIONS_MIN)


class LoginRefused(Exception):
    """The message is what the client is told: it has no secret in it, and not whether the user exists."""


class PlainExchange:
    """user and password in one message: AUTHZID NUL USER NUL PASSWORD (RFC 4616)."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        # Who the client says it is, and who it is.
        self.claimed = ""
        self.user: str | None = None

    def answer(self, message: bytes) -> bytes:
        parts = message.split(b"\0")
        if len(parts) != 3:
            raise LoginRefused("Invalid SASL/PLAIN response: expected 3 tokens")
        try:
            acting_for, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise LoginRefused("Invalid SASL/PLAIN response: not UTF-8") from None
        self.claimed = user
        if not user or not password:
            raise LoginRefused("Authentication failed: username or password not specified")
        known = self._passwords.get(user)
        # The same work for those who do not exist, and for passwords of every length.
        is_right = hmac.compare_digest(_digest(known if known is not None else user + password), _digest(password))
        if known is None or not is_right:
            raise LoginRefused("Authentication failed: Invalid username or password")
        if acting_for and acting_for != user:
            raise LoginRefused(_ACTS_FOR_ANOTHER)
        self.user = user
        return b""


class ScramExchange:
    def __init__(
        self,
        mechanism: str,
        find: Callable[[str], ScramCredential | None],
        *,
        nonce: str,
        decoy: bytes,
        find_token: Callable[[str], TokenLogin | None] = lambda _: None,
        shapes: Sequence[Shape] = (USUAL_SHAPE,),
    ) -> None:
        """`nonce`: ours, of this exchange; `decoy`: a secret of this broker for the salts of those who do not exist,
        which have one of the `shapes` of those who do."""
        self._mechanism, self._hash = mechanism, HASHES[mechanism]
        self._find, self._own_nonce, self._decoy = find, nonce, decoy
        self._name = ""
        self._header = self._first_bare = self._challenge = ""
        # The client's, and that of both.
        self._their_nonce = self._nonce = ""
        self._credential: ScramCredential | None = None
        self._is_decoy = False
        self._find_token = find_token
        self._shapes = shapes
        # Of a client that logs in with a delegation token.
        self.token: TokenLogin | None = None
        self.claimed = ""
        self.user: str | None = None

    def answer(self, message: bytes) -> bytes:
        if self.user is not None:
            raise LoginRefused("the login is over")
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise self._invalid() from None
        return self._second(text) if self._challenge else self._first(text)

    def _first(self, text: str) -> bytes:
        """GS2 header, name, nonce: `n,[a=NAME],n=NAME,r=NONCE`."""
        parts = text.split(",", 2)
        if len(parts) != 3 or parts[0] not in ("n", "y"):
            raise self._invalid()
        kind, acting_for, self._first_bare = parts
        self._header = f"{kind},{acting_for},"
        fields = self._first_bare.split(",")
        if len(fields) < 2 or not fields[0].startswith("n=") or not fields[1].startswith("r=") or len(fields[1]) < 3:
            raise self._invalid()
        self._name = self.claimed = _plain_name(fields[0][2:])
        if not self._name or len(fields[0]) > _NAME_BYTES_MAX:
            raise self._invalid()
        if acting_for and acting_for != f"a={fields[0][2:]}":
            raise LoginRefused(_ACTS_FOR_ANOTHER)
        self._their_nonce = fields[1][2:]
        self._nonce = self._their_nonce + self._own_nonce
        if _WITH_TOKEN in fields[2:]:
            self.token = self._find_token(self._name)
            found = None if self.token is None else self.token.credential
        else:
            found = self._find(self._name)
        self._is_decoy = found is None
        self._credential = credential = found or self._made_up()
        salt = base64.b64encode(credential.salt).decode()
        self._challenge = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._challenge.encode()

    def _second(self, text: str) -> bytes:
        """Channel binding, the nonce of both, the proof: `c=biws,r=NONCE,...,p=PROOF`."""
        without_proof, _, proof_text = text.rpartition(",p=")
        fields = without_proof.split(",")
        bindings = f"c={_CHANNEL_BINDING}", f"c={base64.b64encode(self._header.encode()).decode()}"
        if len(fields) < 2 or fields[0] not in bindings:
            raise self._invalid()
        if not self._has_nonce(fields[1]):
            raise self._wrong()
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except (binascii.Error, ValueError):
            raise self._invalid() from None
        credential = self._credential
        assert credential is not None
        spoken = f"{self._first_bare},{self._challenge},{without_proof}".encode()
        signature = hmac.digest(credential.stored_key, spoken, self._hash)
        if len(proof) != len(signature):
            raise self._wrong()
        key = bytes(byte ^ other for byte, other in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(hashlib.new(self._hash, key).digest(), credential.stored_key)
        if not is_right or self._is_decoy:
            raise self._wrong()
        self.user = self._name if self.token is None else self.token.owner
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, spoken, self._hash))

    def _has_nonce(self, field: str) -> bool:
        """librdkafka before 2.6.1 says its own part once more. Ours is in what it signs all the same, and that is what
        keeps others from saying again what they have heard."""
        wanted = f"r={self._nonce}", f"r={self._their_nonce}{self._nonce}"
        return any(hmac.compare_digest(field.encode(), one.encode()) for one in wanted)

    def _made_up(self) -> ScramCredential:
        """Always the same for a name. Which shape it has changes for few names when there is one more."""

        def digest(what: str) -> bytes:
            return hmac.digest(self._decoy, f"{what} {self._name}".encode(), self._hash)

        shape = max(self._shapes, key=lambda one: digest(f"shape {tuple(one)}"))
        salt = hashlib.shake_256(digest("salt")).digest(shape.salt_bytes)
        if shape.is_text:
            salt = bytes(_DIGITS[byte % len(_DIGITS)] for byte in salt)
        key = digest("key")
        return ScramCredential(salt, key, key, shape.iterations)

    def _invalid(self) -> LoginRefused:
        return LoginRefused(f"Invalid {self._mechanism} message")

    def _wrong(self) -> LoginRefused:
        return LoginRefused(
            "Authentication failed during authentication due to invalid credentials with SASL mechanism "
            + self._mechanism
        )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _plain_name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")
