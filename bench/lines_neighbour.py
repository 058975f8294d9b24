"""What a client waits that asks for next to nothing, while another one asks for the most that an API takes."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, Sequence

from bench.contenders import Contender, arms
from bench.measure import Comparison, Values, cost
from ottla.protocol.messages import ApiVersionsRequest
from tests.loop.largest import NARROW, WIDE, WIDE_PARTITIONS, largest_requests, narrow
from tests.support.raw_client import ConnectionClosed, RawClient, request_frame

GOAL_MS = 20
ANSWER_S_MAX = 20.0
IDLE_S = 2.0
NOBODY = "nobody"
# One name again and again: Kafka tells it as often as it is asked, in answers that its heap does not hold.
_REPEATED = ", known"


def neighbour_line(contenders: Sequence[Contender]) -> Comparison:
    return Comparison(
        "neighbour",
        "longest wait of ApiVersions while another client sends an API's largest requests",
        [cost(name, "ms", digits=1) for name in (NOBODY, *_api_names())],
        arms(contenders, _measure, _prepare),
        notes=f"The goal is {GOAL_MS} ms. '{NOBODY}' is the wait without the other client.",
    )


def _api_names() -> list[str]:
    return list(dict.fromkeys(api for api, _ in _frames()))


def _frames() -> Iterator[tuple[str, bytes]]:
    for what, message, version in largest_requests():
        if not what.endswith(_REPEATED):
            frame = request_frame(message, version)
            yield type(message).__name__.removesuffix("Request"), struct.pack(">i", len(frame)) + frame


def _prepare(contender: Contender) -> None:
    with contender.connect() as connection:
        # A line that came out worse is measured once more on the same brokers; their requests delete what they can.
        for name in connection.topic_names() & {WIDE, *map(narrow, range(NARROW))}:
            connection.delete_topic(name)
        connection.create_topic(WIDE, WIDE_PARTITIONS, {})
        for number in range(NARROW):
            connection.create_topic(narrow(number), 1, {})


def _measure(contender: Contender) -> Values:
    with Pinger(contender) as pinger:
        time.sleep(IDLE_S)
        worst = {NOBODY: pinger.take_worst_ms()}
        for api, frame in _frames():
            pinger.take_worst_ms()
            _ask(contender, frame)
            worst[api] = max(worst.get(api, 0.0), pinger.take_worst_ms())
    return worst


def _ask(contender: Contender, frame: bytes) -> None:
    with RawClient(contender.broker.host, contender.broker.port, timeout_s=ANSWER_S_MAX) as client:
        client.sock.sendall(frame)
        try:
            client.receive_frame()
        except (ConnectionClosed, TimeoutError):
            pass  # too large for this broker; what its neighbours wait is told all the same


class Pinger:
    """Asks for ApiVersions all the while."""

    def __init__(self, contender: Contender) -> None:
        self._client = RawClient(contender.broker.host, contender.broker.port, timeout_s=10 * ANSWER_S_MAX)
        request = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
        self._frame = request_frame(request, 3)
        self._worst_ms = 0.0
        self._began_at: float | None = None
        # A question that was under way when the last span ended is not this one's: to make the next request takes time.
        self._span = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Pinger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        while not self._is_over:
            span, began_at = self._span, time.perf_counter()
            self._began_at = began_at
            self._client.send_frame(self._frame)
            self._client.receive_frame()
            if span == self._span:
                self._worst_ms = max(self._worst_ms, (time.perf_counter() - began_at) * 1000)
            self._began_at = None
            time.sleep(0.0005)

    def take_worst_ms(self) -> float:
        """Since the last time, and of the one that is under way."""
        began_at = self._began_at
        waiting_ms = 0.0 if began_at is None else (time.perf_counter() - began_at) * 1000
        worst_ms, self._worst_ms = self._worst_ms, 0.0
        self._span += 1
        return max(worst_ms, waiting_ms)
