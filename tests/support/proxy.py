"""A TCP proxy between clients and a broker that loses answers on purpose, or mixes them up.

    with Proxy() as proxy:
        # start the broker with advertised.listeners=PLAINTEXT://127.0.0.1:{proxy.port}
        proxy.target = broker_port
        proxy.lose_produce_answers(0.1)      # one in ten: the broker has written, the client is never told

It follows the frames, so it knows which answer belongs to which request. An answer that is lost takes its connection
with it, as on a real network: the client must connect again and ask again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import struct
import threading
from collections import deque
from types import TracebackType
from typing import Self

PRODUCE = 0
# InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit, and Produce.
TRANSACTIONAL = frozenset({PRODUCE, 22, 24, 25, 26, 28})


class Proxy:
    def __init__(self, seed: int = 0, tls: ssl.SSLContext | None = None) -> None:
        """With `tls`, clients speak TLS with the proxy, and the proxy plain text with the broker."""
        self.target = 0
        self.port = 0
        self.lost = 0
        self._rng = random.Random(seed)
        self._lose = 0.0
        self._lose_of = frozenset({PRODUCE})
        self._cut = 0.0
        self.mixed_up = 0
        self._mix_up = 0.0
        self._tls = tls
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def lose_produce_answers(self, share: float) -> None:
        """Drop this share of the answers to Produce, and cut their connections."""
        self.lose_answers(share, frozenset({PRODUCE}))

    def lose_answers(self, share: float, requests: frozenset[int] = TRANSACTIONAL) -> None:
        """As above, for these kinds of requests."""
        self._lose, self._lose_of = share, requests

    def cut_requests(self, share: float) -> None:
        """Forward only a part of this share of the requests, then cut the connection."""
        self._cut = share

    def mix_up_produce_answers(self, share: float) -> None:
        """Send this share of the answers to Produce twice, or only after the next one (never, if there is none)."""
        self._mix_up = share

    # --- life

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    # --- one connection

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        # Answers come in the order of the requests, so a queue of keys tells what each one is.
        asked: deque[int] = deque()
        both = (
            asyncio.create_task(self._requests(reader, broker_writer, asked)),
            asyncio.create_task(self._answers(broker_reader, writer, asked)),
        )
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        for end in (writer, broker_writer):
            with contextlib.suppress(Exception):
                end.close()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[int]) -> None:
        while (frame := await _read_frame(reader)) is not None:
            key = int.from_bytes(frame[4:6], "big")
            if self._rng.random() < self._cut:
                writer.write(frame[: self._rng.randrange(len(frame))])
                await writer.drain()
                return
            asked.append(key)
            writer.write(frame)
            await writer.drain()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[int]) -> None:
        held = b""
        while (frame := await _read_frame(reader)) is not None:
            key = asked.popleft() if asked else -1
            if key in self._lose_of and self._rng.random() < self._lose:
                self.lost += 1
                return
            if key == PRODUCE and self._rng.random() < self._mix_up:
                self.mixed_up += 1
                if not held and self._rng.random() < 0.5:
                    held = frame
                    continue
                frame += frame
            writer.write(frame + held)
            held = b""
            await writer.drain()


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """A frame with its size, or None at the end."""
    try:
        head = await reader.readexactly(4)
        return head + await reader.readexactly(struct.unpack(">i", head)[0])
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
