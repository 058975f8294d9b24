"""The mechanisms that a listener offers, and what each asks whom."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from ottla.client.access.jaas import parse_jaas
from ottla.common.config import BrokerConfig
from ottla.common.config.security import MECHANISMS
from ottla.common.errors import OttlaError
from ottla.metadata.scram import HASHES, ScramCredential
from ottla.security.logins import USUAL_SHAPE, PlainExchange, ScramExchange, Shape

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.logins.tokens import Tokens

_USER = "user_"


class Exchange(Protocol):
    """One login: messages in, answers out, until `user` is known. Raises LoginRefused."""

    # Who the client says it is, as far as it has said so; and who it is.
    claimed: str
    user: str | None

    @property
    def is_by_token(self) -> bool:
        """Whether it was a delegation token, once the user is known."""

    def answer(self, message: bytes) -> bytes: ...

    def lifetime_ms(self, now_ms: int) -> int:
        """How long the login is good for; 0 is without end."""


class _Plain(PlainExchange):
    is_by_token = False

    def lifetime_ms(self, now_ms: int) -> int:
        return 0


class _Scram(ScramExchange):
    @property
    def is_by_token(self) -> bool:
        return self.token is not None

    def lifetime_ms(self, now_ms: int) -> int:
        return 0 if self.token is None else max(1, self.token.expires_ms - now_ms)


class Mechanisms:
    def __init__(self, broker: Broker, listener: str, before: Mechanisms | None = None) -> None:
        """Raises OttlaError for settings that are missing or wrong. The keys of tokens are those that `before` has
        read."""
        self._broker = broker
        self._listener = listener
        self.names = _offered(broker.config, listener)
        self._decoy: bytes = secrets.token_bytes(32) if before is None else before._decoy
        # What the credentials of users look like, by mechanism, and of which users.
        self._shapes: dict[str, tuple[Shape, ...]] = {}
        self._shapes_of: object = None
        self._passwords = _plain_users(broker.config, listener) if "PLAIN" in self.names else {}
        self._tokens: Tokens | None = None if before is None else before._tokens
        if "OAUTHBEARER" in self.names and self._tokens is None:
            self._tokens = self._make_tokens()

    def begin(self, mechanism: str) -> Exchange | None:
        """None for one that is not offered."""
        if mechanism not in self.names:
            return None
        if mechanism == "PLAIN":
            return _Plain(self._passwords)
        if mechanism in HASHES:
            nonce = base64.b64encode(secrets.token_bytes(24)).decode()
            return _Scram(
                mechanism,
                lambda user: self._credential(user, mechanism),
                nonce=nonce,
                decoy=self._decoy,
                find_token=lambda token: self._broker.tokens.login(token, mechanism),
                shapes=self._shapes_now(mechanism),
            )
        assert self._tokens is not None
        return self._tokens.exchange()

    def _credential(self, user: str, mechanism: str) -> ScramCredential | None:
        return self._broker.image.scram.get(user, {}).get(mechanism)

    def _shapes_now(self, mechanism: str) -> tuple[Shape, ...]:
        users = self._broker.image.scram
        if users is not self._shapes_of:
            self._shapes_of = users
            self._shapes.clear()
        if mechanism not in self._shapes:
            seen = {
                Shape.of(found) for credentials in users.values() if (found := credentials.get(mechanism)) is not None
            }
            self._shapes[mechanism] = tuple(sorted(seen)) or (USUAL_SHAPE,)
        return self._shapes[mechanism]

    def _make_tokens(self) -> Tokens:
        try:
            from ottla.broker.logins.tokens import Tokens
        except ImportError:
            raise OttlaError(
                f"Listener {self._listener} offers OAUTHBEARER, which needs joserfc: pip install 'ottla[security]'."
            ) from None
        return Tokens(self._broker)


def try_out(config: BrokerConfig, listener: str) -> None:
    """Raises OttlaError for settings that would leave a listener without its users."""
    if "PLAIN" in _offered(config, listener):
        _plain_users(config, listener)


def _offered(config: BrokerConfig, listener: str) -> list[str]:
    wanted = config.of_listener(listener, "sasl.enabled.mechanisms")
    return [mechanism for mechanism in wanted if mechanism in MECHANISMS]


def _plain_users(config: BrokerConfig, listener: str) -> Mapping[str, str]:
    """Those that Kafka's PlainLoginModule is given: user_NAME="PASSWORD"."""
    name = f"listener.name.{listener.lower()}.plain.sasl.jaas.config"
    text = config.of_listener(listener, "sasl.jaas.config", "PLAIN")
    if not text:
        raise OttlaError(
            f"Listener {listener} offers PLAIN and has no users: set {name} to "
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME="PASSWORD";'
        )
    module, options = parse_jaas(text)
    if module != "PlainLoginModule":
        raise OttlaError(f"{name} has {module}, but PLAIN wants PlainLoginModule.")
    users = {option.removeprefix(_USER): value for option, value in options.items() if option.startswith(_USER)}
    if not users:
        raise OttlaError(f'{name} names no user: give each as user_NAME="PASSWORD".')
    return users
