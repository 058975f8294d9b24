"""A real broker inside your tests.

    from ottla.testing import Broker

    with Broker() as broker:
        broker.produce("orders", {"euro": 7}, key="customer-1")
        run_my_application(broker.bootstrap_servers)
        assert broker.records("sales", count=1)[0].json == {"euro": 7}

With pytest the fixtures `ottla_broker` (one for the session) and `ottla_topic` (a fresh topic for the test) are there
without an import, and for pipelines on Spark `ottla_pipelines` (see `ottla.testing.pipelines`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.broker import Broker
    from ottla.testing.connect import Connect
    from ottla.testing.movable_clock import MovableClock
    from ottla.testing.pipelines import Pipelines
    from ottla.testing.records import Record
    from ottla.testing.registry import Registry
    from ottla.testing.security import Security

__all__ = ["Broker", "Connect", "MovableClock", "Pipelines", "Record", "Registry", "Security"]

# The pytest plugin lives in this package, and every pytest session of whoever has Ottla installed imports it: the
# broker is loaded when somebody asks for it.
_HOMES = {
    "Broker": "ottla.testing.broker",
    "Connect": "ottla.testing.connect",
    "MovableClock": "ottla.testing.movable_clock",
    "Pipelines": "ottla.testing.pipelines",
    "Record": "ottla.testing.records",
    "Registry": "ottla.testing.registry",
    "Security": "ottla.testing.security",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
