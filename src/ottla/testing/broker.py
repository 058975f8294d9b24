"""A complete broker in a thread of this process: its own event loop, a free port, a folder that vanishes."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from ottla.broker.chores.timers import JumpingTimers
from ottla.common.clock import Clock
from ottla.common.config import BrokerConfig
from ottla.common.errors import OttlaError
from ottla.server.server import Server, allow_many_files
from ottla.testing.in_thread import InThread
from ottla.testing.movable_clock import MovableClock
from ottla.testing.records import Headers, Key, NoTopic, Record, Sender, Value, read_all
from ottla.testing.security import SecuredFolder, Security

T = TypeVar("T")

# What a test wants and a server does not: groups that form at once.
_DEFAULTS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "4",
    "log.cleaner.backoff.ms": "500",
}
_LOOK_AGAIN_S = 0.05


class Broker(InThread[Server]):
    """`with Broker() as broker:` or `async with`; or `start()` and `stop()` by hand.

    `properties` are Kafka's broker properties, e.g. `{"num.partitions": "3"}`; None puts one that is set for tests back
    to Kafka's default. With a `data_dir` the data stay there after `stop()`, and the next broker on it finds them.
    `security` is "SSL", "SASL_PLAINTEXT", "SASL_SSL" or a `Security`: `client_settings()` gets in there.
    `clock.advance(hours=1)` moves the broker's time. `produce` and `records` save a test its own clients.
    """

    _what = "broker"

    def __init__(
        self,
        properties: Mapping[str, str | None] | None = None,
        *,
        data_dir: str | Path | None = None,
        security: str | Security | None = None,
    ) -> None:
        super().__init__()
        self._security = Security(security) if isinstance(security, str) else security
        self._secured: SecuredFolder | None = None
        self._certificates: Path | None = None
        merged = {**_DEFAULTS, **(properties or {})}
        self._properties = {name: value for name, value in merged.items() if value is not None}
        self._given_dir = Path(data_dir) if data_dir is not None else None
        self.clock = MovableClock()
        self._port = 0
        self._held_port: socket.socket | None = None
        self._sender: Sender | None = None
        self.data_dir: Path | None = None

    # --- life

    def start(self) -> Self:
        super().start()
        self._port = self.server.addresses[0][1]
        return self

    def stop(self) -> None:
        """Stop cleanly and remove the data, unless their folder was given."""
        self._end()
        self._clean_up()

    def restart(self) -> None:
        """Stop and start again on the same port with the same data."""
        self._end()
        self.start()

    def _end(self) -> None:
        self._sender = None
        super().stop()

    def _prepare(self) -> None:
        allow_many_files()
        self.data_dir = self._given_dir or self.data_dir or Path(tempfile.mkdtemp(prefix="ottla-"))
        if self._security is not None and self._secured is None:
            self._certificates = Path(tempfile.mkdtemp(prefix="ottla-certificates-"))
            self._secured = SecuredFolder(self._security, self._certificates)
        self._hold_port()

    def _hold_port(self) -> None:
        """Nobody gets it by chance during a restart: it is bound from the first start on; only the broker listens."""
        if self._held_port is None:
            held = socket.socket()
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                held.bind(("127.0.0.1", self._port))
            except OSError:  # after a stop somebody may have it; the broker says so
                held.close()
                return
            self._held_port, self._port = held, held.getsockname()[1]

    def _clean_up(self) -> None:
        if self._held_port is not None:
            self._held_port.close()
            self._held_port = None
        if self._given_dir is None and self.data_dir is not None:
            shutil.rmtree(self.data_dir, ignore_errors=True)
            self.data_dir = None
        if self._certificates is not None:
            shutil.rmtree(self._certificates, ignore_errors=True)
            self._certificates = self._secured = None

    def _make(self) -> Server:
        listen = f"PLAINTEXT://127.0.0.1:{self._port}"
        secured = {} if self._secured is None else self._secured.broker_properties(self._port)
        properties = {"listeners": listen, "log.dirs": str(self.data_dir), **secured, **self._properties}
        return Server(BrokerConfig.load(properties), clock=self.clock, make_timers=self._make_timers)

    def _make_timers(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> JumpingTimers:
        timers = JumpingTimers(loop, clock)

        def moved() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(timers.on_jump)

        self.clock.on_move(moved)
        return timers

    # --- use

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.server.addresses[0][1]}"

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """What a client of librdkafka needs to get in, as the first user or as another."""
        if self._secured is None:
            return {"bootstrap.servers": self.bootstrap_servers}
        return self._secured.client_settings(self.bootstrap_servers, user)

    def java_settings(self, user: str | None = None) -> dict[str, str]:
        """The same by the names of Java's clients, which are Spark's with `kafka.` before them."""
        if self._secured is None:
            return {"bootstrap.servers": self.bootstrap_servers}
        return self._secured.java_settings(self.bootstrap_servers, user)

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Without a client: the topic is there when this returns."""
        from ottla.controller.topic_plan import NewTopic

        self.run(self.server.broker.topics.create_one(NewTopic(name, partitions, configs=dict(configs or {}))))

    def produce(
        self,
        topic: str,
        *values: Value,
        key: Key = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Send records and wait until the broker has them. They are stamped with the broker's time unless told.

        Text is sent as UTF-8, dicts and lists as JSON, None as a null.
        """
        if self._sender is None:
            self._sender = Sender(self.client_settings())
        stamp_ms = self.clock.now_ms() if timestamp_ms is None else timestamp_ms
        self._sender.send(topic, values, key, headers or {}, partition, stamp_ms)

    def records(
        self, topic: str, *, count: int = 0, timeout_s: float = 10.0, committed_only: bool = True
    ) -> list[Record]:
        """All records of a topic, by partition and offset; waits until there are at least `count`, and for the topic.

        Raises TimeoutError, which says how many there were. Records of open and aborted transactions are left out
        unless `committed_only` is False.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            found, problem = self._read(topic, committed_only)
            if problem is None and len(found) >= count:
                return found
            if problem is not None and not count:
                raise problem
            if time.monotonic() > deadline:
                there = str(problem) if problem is not None else f"topic '{topic}' has {len(found)} records."
                raise TimeoutError(f"{count} records were awaited for {timeout_s:g} s: {there}")
            time.sleep(_LOOK_AGAIN_S)

    def _read(self, topic: str, committed_only: bool) -> tuple[list[Record], OttlaError | None]:
        try:
            return read_all(self.client_settings(), topic, committed_only), None
        except NoTopic as error:
            return [], error

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the broker's own loop and wait for it."""
        loop = self.server.broker.loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    # --- with

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.to_thread(self.stop)
