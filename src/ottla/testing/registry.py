"""A schema registry in a thread of this process, on a broker of yours."""

from __future__ import annotations

from typing import Any

from ottla.registry.server import RegistryServer
from ottla.registry.settings import RegistrySettings
from ottla.testing.in_thread import InThread


class Registry(InThread[RegistryServer]):
    """`with Broker() as broker, Registry(broker.bootstrap_servers) as registry:`; then clients use `registry.url`.

    `settings` are those of `ottla.registry.settings.RegistrySettings`, such as `default_level="FULL"`. A schema is
    there for everybody when the call that registered it returns.
    """

    _what = "registry"

    def __init__(self, bootstrap_servers: str, **settings: Any) -> None:
        super().__init__()
        given = {"port": 0, "session_timeout_ms": 6_000, "heartbeat_ms": 500, "rebalance_timeout_ms": 6_000} | settings
        self._settings = RegistrySettings(bootstrap=bootstrap_servers, **given)

    @property
    def url(self) -> str:
        return self.server.url

    def _make(self) -> RegistryServer:
        return RegistryServer(self._settings)
