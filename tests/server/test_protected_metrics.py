"""Metrics over HTTPS with a login, asked for by a real HTTP client."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ottla.client.address import ClusterAddress
from ottla.common.errors import OttlaError
from ottla.common.passwords import hashed
from ottla.exposition.protection import protection
from ottla.monitoring.monitor import MonitorSettings
from ottla.monitoring.service import MonitorService
from ottla.testing import Broker
from tests.support.certificates import Certificates

LOGIN = ("prometheus", "let me: in")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("users") / "users.toml"
    path.write_text(f'[users.prometheus]\npassword = "{hashed(LOGIN[1])}"\n')
    return path


@pytest.fixture(scope="module")
def trusting(certificates: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates.ca))


@pytest.fixture(scope="module")
def settings(certificates: Certificates, users: Path) -> dict[str, str]:
    return {
        "ottla.metrics.listen": "127.0.0.1:0",
        "ottla.metrics.ssl.certificate.location": str(certificates.issue("127.0.0.1")),
        "ottla.metrics.users.file": str(users),
    }


@pytest.fixture(scope="module")
def url(settings: dict[str, str]) -> Iterator[str]:
    with Broker(settings) as broker:
        metrics = broker.server.metrics
        assert metrics is not None
        yield metrics.url


def test_who_logs_in_gets_metrics_and_nobody_else(url: str, trusting: ssl.SSLContext) -> None:
    assert url.startswith("https://")
    with httpx.Client(base_url=url, verify=trusting) as client:
        refused = client.get("/metrics")
        assert refused.status_code == 401 and refused.headers["WWW-Authenticate"].startswith("Basic ")
        for wrong in (("prometheus", "x"), ("nobody", LOGIN[1]), ("", "")):
            assert client.get("/metrics", auth=wrong).status_code == 401
        assert client.get("/metrics", headers={"Authorization": "Bearer x"}).status_code == 401
        for _ in range(2):
            answer = client.get("/metrics", auth=LOGIN)
            assert answer.status_code == 200 and "kafka_server_kafkaserver_brokerstate 3.0" in answer.text
        assert client.get("/metrics").status_code == 401, "the login is of a request, not of the connection"


def test_probes_need_no_login_and_find_nothing_behind_it(url: str, trusting: ssl.SSLContext) -> None:
    with httpx.Client(base_url=url, verify=trusting) as client:
        assert client.get("/health/live").text == "alive\n"
        assert client.get("/health/ready").status_code == 200
        for around in ("/health/../metrics", "/health/%2e%2e/metrics", "//metrics", "/metrics?x=/health/"):
            assert client.get(url + around).status_code in (401, 404), around


def test_who_speaks_no_tls_gets_nothing_and_holds_nobody_up(url: str, trusting: ssl.SSLContext) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(url.replace("https", "http") + "/metrics", auth=LOGIN)
    assert httpx.get(f"{url}/health/live", verify=trusting).status_code == 200


async def test_the_monitor_asks_for_the_same(
    settings: dict[str, str], users: Path, url: str, trusting: ssl.SSLContext
) -> None:
    given = protection(settings["ottla.metrics.ssl.certificate.location"], None, str(users))
    service = MonitorService(ClusterAddress("127.0.0.1:1"), "127.0.0.1", 0, MonitorSettings(), (), given)
    await service._endpoint.start()  # without the thread that looks at the cluster
    try:
        async with httpx.AsyncClient(base_url=service.url, verify=trusting) as client:
            for path in ("/metrics", "/v1/groups", "/v1/groups/g", "/v1/cluster"):
                assert (await client.get(path)).status_code == 401
            assert (await client.get("/metrics", auth=LOGIN)).status_code == 200
            assert (await client.get("/v1/groups/g", auth=LOGIN)).status_code == 404
            assert (await client.get("/health/live")).status_code == 200
    finally:
        await service._endpoint.stop()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ottla.metrics.ssl.certificate.location": "", "ottla.metrics.ssl.key.location": "k.pem"}, "without"),
        ({"ottla.metrics.ssl.certificate.location": "/nowhere.pem"}, "cannot read /nowhere.pem"),
        ({"ottla.metrics.users.file": "/nowhere.toml"}, "cannot read /nowhere.toml"),
    ],
)
def test_files_that_cannot_be_used_are_told_in_one_sentence(
    settings: dict[str, str], changed: dict[str, str], said: str
) -> None:
    with pytest.raises(OttlaError, match=said):
        Broker(settings | changed).start()


def test_what_is_in_the_files_is_looked_at(certificates: Certificates, users: Path, tmp_path: Path) -> None:
    identity = str(certificates.issue("127.0.0.1", password="secret"))
    for certificate, key in ((str(users), None), (identity, None), (str(certificates.ca), identity)):
        with pytest.raises(OttlaError, match="are no certificate with its key"):
            protection(certificate, key, None)
    for text, said in (
        ("", "names no user"),
        ("[users", "not valid TOML"),
        ("[users.a]", "needs a password"),
        ('[users.a]\npassword = "scrypt:1"', "no hash"),
        ('[users.a]\npassword = "x"\nrole = "admin"', "has 'role'"),
    ):
        broken = tmp_path / "users.toml"
        broken.write_text(text)
        with pytest.raises(OttlaError, match=said):
            protection(None, None, str(broken))
