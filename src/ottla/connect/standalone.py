"""A worker of its own, whose connectors are those of property files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ottla.common.errors import OttlaError
from ottla.connect.server import ConnectServer
from ottla.connect.storage import configs
from ottla.connect.worker import operations
from ottla.connect.worker.errors import NotLeader, Refused
from ottla.connect.worker.settings import WorkerSettings, parse_worker

_PATIENCE_S = 60.0


def standalone_worker(given: Mapping[str, str], *, listen: str | None, master: str) -> WorkerSettings:
    """With a group and topics of its own. Raises OttlaError."""
    group = given.get("group.id", "standalone")
    names = {f"{which}.storage.topic": f"connect-{which}s-{group}" for which in ("config", "offset")}
    names["status.storage.topic"] = f"connect-status-{group}"
    return parse_worker({**names, **given, "group.id": group}, listen=listen, master=master)


class StandaloneServer(ConnectServer):
    def __init__(
        self, settings: WorkerSettings, connectors: Mapping[str, Mapping[str, str]], spark: Any = None
    ) -> None:
        """`connectors`: configurations by the files that they are from. Raises OttlaError."""
        super().__init__(settings, spark)
        self._connectors: dict[str, Mapping[str, str]] = {}
        for file, config in connectors.items():
            name = config.get("name")
            if not name:
                raise OttlaError(f"{file} has no `name`: a connector needs one.")
            if name in self._connectors:
                raise OttlaError(f"{file} is of the connector '{name}', and so is another file.")
            self._connectors[name] = config

    async def start(self) -> None:
        await super().start()
        try:
            await asyncio.to_thread(self._create)
        except Refused as refused:
            await self.stop()
            raise OttlaError(refused.message) from None
        except NotLeader:
            await self.stop()
            raise OttlaError(f"other workers use the group '{self.settings.group}': set another group.id.") from None

    def _create(self) -> None:
        worker = self.worker
        assert worker is not None
        if worker.wait_for_leader(_PATIENCE_S) is not None:
            raise NotLeader(None)
        for name, config in self._connectors.items():
            operations.put_config(worker, name, config)
            operations.set_target(worker, name, configs.STARTED)
        for name in set(worker.configs.configs) - self._connectors.keys():
            operations.set_target(worker, name, configs.STOPPED)
