"""Requests of the HTTP sink, without a worker: where they go, and what an answer means."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

from ottla.common.ids import TopicPartition
from ottla.connect.api import BadRecords, Column, ConnectorFailure, Outage, Records
from ottla.connect.connectors.http_sink import HttpSink


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status = 200
    got: list[tuple[str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        Service.got.append((self.path, body))
        self.send_response(Service.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    Service.got, Service.status = [], 200
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def send(topics: list[str], **config: str) -> None:
    count = len(topics)
    writer = HttpSink({name.replace("_", "."): value for name, value in config.items()}).open(TopicPartition("t", 0), 0)
    try:
        writer.write(
            Records(
                topics=pa.array(topics),
                partitions=pa.array([0] * count, pa.int32()),
                timestamps=pa.array([0] * count, pa.int64()),
                keys=Column(None, [None] * count),
                values=Column(None, list(range(count))),
                offsets=pa.array(range(count), pa.int64()),
            )
        )
    finally:
        writer.close()


def test_records_go_to_the_topic_that_transforms_give_them(url: str) -> None:
    send(["a", "b/c", "b/c", "a"], http_url=f"{url}/${{topic}}", batch_records="10")
    assert Service.got == [("/a", "[0]"), ("/b%2Fc", "[1, 2]"), ("/a", "[3]")]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, ConnectorFailure),
        (403, ConnectorFailure),
        (301, ConnectorFailure),
        (308, ConnectorFailure),
        (405, ConnectorFailure),
        (400, BadRecords),
        (422, BadRecords),
        (429, Outage),
    ],
)
def test_who_is_not_let_in_has_no_bad_records(url: str, status: int, error: type[Exception]) -> None:
    """With errors.tolerance=all every record would be left out, from the day on which a password ends or the service
    moves."""
    Service.status = status
    with pytest.raises(error, match=str(status)):
        send(["t"], http_url=url)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("http://anna:secret@host/x", "http.authorization"),
        ("http://host:port/x", "expected http://HOST/PATH"),
        ("http://[::1/x", "expected http://HOST/PATH"),
    ],
)
def test_an_address_that_cannot_be_used_says_what_to_do(given: str, sentence: str) -> None:
    (told,) = [
        value.errors for value in HttpSink.config_def.validate({"http.url": given}) if value.key.name == "http.url"
    ]
    assert sentence in told[0]
