"""`loadgen.c` in Python, for a machine without a C compiler: the same modes, options and output, several times the CPU.

See loadgen.c for what the modes mean. One thread and one epoll here too; it is run as a script, not imported.
"""

from __future__ import annotations

import argparse
import json
import resource
import select
import socket
import struct
import sys
import time
from pathlib import Path

FETCH_TOP_ERROR, FETCH_ERROR, FETCH_RECORDS = 9, 37, 68
SILENCE_S_MAX = 30.0


class Connection:
    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.sent_at: list[float] = []
        self.correlation = self.answered = self.offset = self.next_frame = 0
        self.out = b""
        self.received = bytearray()
        self.fetch_frame: bytes | None = None
        self.finished = False

    def send(self, frame: bytes, counts_from: float) -> None:
        self.out += frame[:8] + struct.pack(">i", self.correlation) + frame[12:]
        self.correlation += 1
        self.sent_at.append(counts_from)
        self.push()

    def push(self) -> None:
        try:
            self.out = self.out[self.socket.send(self.out) :]
        except BlockingIOError:
            return

    def answers(self) -> list[bytes]:
        try:
            piece = self.socket.recv(1 << 20)
        except BlockingIOError:
            return []
        if not piece:
            sys.exit("loadgen: the broker closed a connection")
        self.received += piece
        complete, at = [], 0
        while len(self.received) - at >= 4:
            (size,) = struct.unpack_from(">i", self.received, at)
            if len(self.received) - at - 4 < size:
                break
            complete.append(bytes(self.received[at + 4 : at + 4 + size]))
            at += 4 + size
        del self.received[:at]
        return complete


class Generator:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.frames = split(options.frames)
        self.fetch_frames = split(options.fetch_frames)
        self.mean_frame_bytes = sum(map(len, self.frames)) // max(1, len(self.frames))
        self.latencies: list[float] = []
        self.counted = self.counted_bytes = self.total_requests = self.total_bytes = self.records = self.issued = 0
        self.last = 0.0
        count = 2 if options.mode == "e2e" else options.connections
        self.connections = [Connection(options.host, options.port[i % len(options.port)]) for i in range(count)]
        self.poll = select.epoll()
        self.by_fd = {one.socket.fileno(): one for one in self.connections}
        for fd in self.by_fd:
            self.poll.register(fd, select.EPOLLIN)
        self.start = time.monotonic()
        self.measure_from = self.start + options.warmup
        self.end = self.measure_from + options.seconds

    # -- sending -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        mode = self.options.mode
        for index, one in enumerate(self.connections):
            first = index if self.options.pinned else self.first_frame(index)
            one.next_frame = first % max(1, len(self.frames))
            if mode == "fetch" or (mode == "e2e" and index == 1):
                one.fetch_frame = self.fetch_frames[index % len(self.fetch_frames) if mode == "fetch" else 0]
                self.send_fetch(one)
            elif mode == "idle":
                one.send(self.frames[0], self.start)

    def first_frame(self, index: int) -> int:
        """Connections begin at different places, each at a frame for its broker."""
        place, brokers = index * len(self.frames) // len(self.connections), len(self.options.port)
        return place - place % brokers + index % brokers

    def send_fetch(self, one: Connection) -> None:
        frame = bytearray(one.fetch_frame or b"")
        struct.pack_into(">q", frame, self.options.offset_at, one.offset)
        one.send(bytes(frame), time.monotonic())

    def send_next(self, one: Connection, counts_from: float) -> None:
        one.send(self.frames[one.next_frame], counts_from)
        stride = 0 if self.options.pinned else len(self.options.port)
        one.next_frame = (one.next_frame + stride) % len(self.frames)
        self.issued += 1

    def can_send(self, one: Connection) -> bool:
        return not one.finished and not one.out and one.correlation - one.answered < self.options.inflight

    def feed(self, now: float) -> None:
        options = self.options
        if options.mode not in ("produce", "e2e"):
            return
        due = self.due(now)
        if options.mode == "e2e":
            producer = self.connections[0]
            while self.issued < due and self.can_send(producer):
                count = min(due - self.issued, len(self.frames))
                self.issued += count
                producer.send(self.frames[count - 1], now)
            producer.finished = now >= self.end and self.issued >= due and producer.answered == producer.correlation
            return
        for one in self.connections:
            while self.issued < due and self.can_send(one):
                self.send_next(one, self.start + self.issued / options.rate if options.rate else time.monotonic())
            if now >= self.end or self.issued >= options.requests >= 0:
                one.finished = one.answered == one.correlation

    def due(self, now: float) -> int:
        """How many requests (or records) may have been issued by now."""
        if self.options.rate:
            return int((min(now, self.end) - self.start) * self.options.rate) + 1
        if now >= self.end:
            return self.issued
        return self.options.requests if self.options.requests >= 0 else sys.maxsize

    # -- receiving ---------------------------------------------------------------------------------------------------

    def on_answer(self, one: Connection, answer: bytes, now: float) -> None:
        if struct.unpack_from(">i", answer)[0] != one.answered:
            sys.exit("loadgen: an answer came out of order")
        since = one.sent_at[one.answered]
        one.answered += 1
        self.total_requests += 1
        self.last = now
        if one.fetch_frame is not None:
            self.on_fetched(one, answer, now)
        elif self.options.mode == "idle":
            one.finished = True
        else:
            check(answer, self.options.error_at)
            if self.options.mode == "produce":
                self.total_bytes += self.mean_frame_bytes
                if self.measure_from <= now < self.end:
                    self.counted += 1
                    self.counted_bytes += self.mean_frame_bytes
                    self.latencies.append(now - since)

    def on_fetched(self, one: Connection, answer: bytes, now: float) -> None:
        check(answer, FETCH_TOP_ERROR)
        check(answer, FETCH_ERROR)
        at, length, shift = FETCH_RECORDS, 0, 0
        while True:
            length |= (answer[at] & 0x7F) << shift
            shift += 7
            at += 1
            if not answer[at - 1] & 0x80:
                break
        end = at + max(0, length - 1)
        while end - at >= 61:
            base, size = struct.unpack_from(">qi", answer, at)
            if size + 12 > end - at:
                break
            last = base + struct.unpack_from(">i", answer, at + 23)[0]
            if self.options.mode == "e2e":
                self.on_records(max(base, one.offset), last, now)
            self.records += last - base + 1
            self.total_bytes += size + 12
            one.offset = max(one.offset, last + 1)
            at += size + 12
        if self.options.mode == "e2e":
            one.finished = now > self.end + 10 or (now >= self.end and one.offset >= self.issued)
        else:
            one.finished = one.offset >= self.options.end_offset
        if not one.finished:
            self.send_fetch(one)

    def on_records(self, first: int, last: int, now: float) -> None:
        for offset in range(first, last + 1):
            due = self.start + offset / self.options.rate
            if self.measure_from <= due < self.end:
                self.latencies.append(now - due)
                self.counted += 1

    # -- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self.begin()
        heard_at = time.monotonic()
        while not all(one.finished for one in self.connections):
            now = time.monotonic()
            self.feed(now)
            for fd, one in self.by_fd.items():
                self.poll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if one.out else 0))
            wait = 1.0
            if self.options.rate:
                wait = max(0.0, self.start + self.issued / self.options.rate - time.monotonic())
                wait = wait if 0 < wait < 1 else 0.0005
            for fd, event in self.poll.poll(min(wait, max(0.001, self.end - now))):
                one = self.by_fd[fd]
                heard_at = time.monotonic()
                if event & select.EPOLLOUT and one.out:
                    one.push()
                if event & ~select.EPOLLOUT:
                    for answer in one.answers():
                        self.on_answer(one, answer, time.monotonic())
            if time.monotonic() - heard_at > SILENCE_S_MAX:
                sys.exit("loadgen: no answer for 30 seconds")

    def report(self) -> dict[str, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        fetching = self.options.mode == "fetch"
        until = self.last if fetching else min(self.last, self.end)
        ordered = sorted(self.latencies) or [0.0]
        shares = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}
        return {
            "counted": self.counted,
            "counted_bytes": self.counted_bytes,
            "elapsed_s": until - (self.start if fetching else self.measure_from),
            "total_requests": self.total_requests,
            "total_bytes": self.total_bytes,
            "records": self.records,
            **{name: ordered[min(len(ordered) - 1, int(len(ordered) * of))] * 1e3 for name, of in shares.items()},
            "client_cpu_s": used.ru_utime + used.ru_stime,
        }


def check(answer: bytes, at: int) -> None:
    (error,) = struct.unpack_from(">h", answer, at)
    if error:
        sys.exit(f"loadgen: the broker answered error {error}")


def split(path: Path | None) -> list[bytes]:
    content, frames, at = path.read_bytes() if path else b"", [], 0
    while at < len(content):
        size = 4 + struct.unpack_from(">i", content, at)[0]
        frames.append(content[at : at + size])
        at += size
    return frames


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["produce", "fetch", "e2e", "idle"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, action="append", required=True)
    parser.add_argument("--frames", type=Path)
    parser.add_argument("--fetch-frames", type=Path)
    whole = {
        "connections": 1,
        "inflight": 1,
        "error-at": 0,
        "offset-at": 0,
        "end-offset": -1,
        "requests": -1,
        "pinned": 0,
    }
    for name, default in whole.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, seconds in {"seconds": 3.0, "warmup": 0.0, "rate": 0.0}.items():
        parser.add_argument(f"--{name}", type=float, default=seconds)
    return parser.parse_args()


if __name__ == "__main__":
    generator = Generator(parse())
    generator.run()
    print(json.dumps(generator.report()), flush=True)
    if generator.options.mode == "idle":
        sys.stdin.read()
