"""A request that another worker has to answer arrives there as it came."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ottla.connect.rest.answers import nothing
from ottla.connect.rest.app import _route


@pytest.mark.parametrize("name", ["plain", "a b", "a%41", "a?b", "a#b", "ü&=+"])
def test_the_name_of_a_connector_is_the_same_for_the_leader(name: str) -> None:
    asked_of_leader: list[str] = []

    def leader(request: httpx.Request) -> httpx.Response:
        asked_of_leader.append(request.url.raw_path.decode())
        return httpx.Response(204)

    app = Starlette(
        routes=[_route("/connectors/{name}/pause", "PUT", lambda asked: asked.by_leader(lambda: nothing(500)))]
    )
    app.state.worker = SimpleNamespace(
        wait_for_leader=lambda timeout_s: "http://leader", config_topic=SimpleNamespace(read_to_end=lambda: None)
    )
    app.state.forwarding = httpx.Client(transport=httpx.MockTransport(leader))
    path = f"/connectors/{quote(name, safe='')}/pause?q=1%262"
    assert TestClient(app).put(path).status_code == 204
    assert asked_of_leader == [path]
