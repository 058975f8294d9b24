"""As much of a broker as it takes to log in, with answers that a test may spoil.

    with SaslBroker({"ada": "secret"}, spoil=lambda answer: answer.replace(b"i=4096", b"i=1")) as broker:
        BrokerConnection("127.0.0.1", broker.port, ...)

It knows ApiVersions, SaslHandshake and SaslAuthenticate with PLAIN and SCRAM; on anything else it hangs up, as Kafka
does before somebody has logged in.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any

from ottla.client.access.security_settings import MECHANISMS
from ottla.common.errors import ErrorCode
from ottla.protocol import codec
from ottla.protocol import messages as m
from tests.support.frame_server import FrameServer, answered

SALT, ITERATIONS = b"some salt", 4096
_NAMES = {18: "ApiVersions", 17: "SaslHandshake", 36: "SaslAuthenticate"}


class SaslBroker(FrameServer):
    def __init__(
        self,
        passwords: Mapping[str, str],
        *,
        mechanisms: tuple[str, ...] = MECHANISMS,
        spoil: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self.passwords, self.mechanisms, self.spoil = passwords, mechanisms, spoil
        self.logged_in: list[str] = []
        self.refused_count = 0
        super().__init__(lambda: _Login(self).answer_to)


def _versions(_: Any) -> codec.Message:
    one = m.ApiVersionsResponse.ApiVersion
    ranges = [(18, 0, 3), (17, 0, 1), (36, 0, 2), (3, 0, 12)]
    keys = [one(api_key=key, min_version=low, max_version=high) for key, low, high in ranges]
    return m.ApiVersionsResponse(api_keys=keys)


class _Login:
    """One connection's."""

    def __init__(self, broker: SaslBroker) -> None:
        self._broker = broker
        self._hash = ""
        self._user = ""
        self._spoken: list[bytes] = []

    def answer_to(self, frame: bytes) -> bytes | None:
        return answered(frame, _NAMES, self._reply)

    def _reply(self, name: str, request: Any, _: int) -> codec.Message:
        replies = {"ApiVersions": _versions, "SaslHandshake": self.handshake, "SaslAuthenticate": self.authenticate}
        return replies[name](request)

    def handshake(self, request: Any) -> codec.Message:
        known = self._broker.mechanisms
        self._hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}.get(request.mechanism, "")
        code = ErrorCode.NONE if request.mechanism in known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return m.SaslHandshakeResponse(error_code=code, mechanisms=list(known))

    def authenticate(self, request: Any) -> codec.Message:
        message = bytes(request.auth_bytes)
        try:
            answer = self._scram(message) if self._hash else self._plain(message)
        except KeyError:
            self._broker.refused_count += 1
            return m.SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed:\n no such luck."
            )
        return m.SaslAuthenticateResponse(auth_bytes=self._broker.spoil(answer))

    def _plain(self, message: bytes) -> bytes:
        _, user, password = message.decode().split("\0")
        if self._broker.passwords[user] != password:
            raise KeyError
        self._broker.logged_in.append(user)
        return b""

    def _scram(self, message: bytes) -> bytes:
        if not self._spoken:
            bare = message.removeprefix(b"n,,")
            name, _, nonce = bare.partition(b",r=")
            self._user = name.decode().removeprefix("n=").replace("=2C", ",").replace("=3D", "=")
            first = b"r=%s-theirs,s=%s,i=%d" % (nonce, base64.b64encode(SALT), ITERATIONS)
            self._spoken = [bare, first]
            return first
        without_proof, _, proof = message.partition(b",p=")
        spoken = b",".join((*self._spoken, without_proof))
        salted = hashlib.pbkdf2_hmac(self._hash, self._broker.passwords[self._user].encode(), SALT, ITERATIONS)
        key = hmac.digest(salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, key).digest(), spoken, self._hash)
        if bytes(a ^ b for a, b in zip(key, signature, strict=True)) != base64.b64decode(proof):
            raise KeyError
        self._broker.logged_in.append(self._user)
        return b"v=" + base64.b64encode(hmac.digest(hmac.digest(salted, b"Server Key", self._hash), spoken, self._hash))
