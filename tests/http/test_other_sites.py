"""What a page of another site may make a browser do here: look, and change nothing."""

from __future__ import annotations

import httpx
import pytest
from starlette.responses import PlainTextResponse

from ottla.http.server import HttpServer

HERE = "http://127.0.0.1:{port}"
PAGES = [
    ({"Origin": "https://evil.example"}, False),
    ({"Origin": "null"}, False),
    ({"Origin": "http://127.0.0.1:1"}, False),
    ({"Origin": "http://[evil"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Origin": HERE}, False),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Origin": HERE}, True),
    # Through a proxy that has a name of its own.
    ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxy.example"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({}, True),
]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_only_programs_and_our_own_site_ask_for_changes(method: str) -> None:
    http = HttpServer(lambda status, sentence: PlainTextResponse(sentence, status))
    port = http.bind("127.0.0.1", 0)
    await http.start(PlainTextResponse("done"))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        for headers, is_let in PAGES:
            said = {name: value.format(port=port) for name, value in headers.items()}
            assert (await client.get("/", headers=said)).status_code == 200
            assert (await client.request(method, "/", headers=said)).status_code == (200 if is_let else 403), said
    await http.stop()
