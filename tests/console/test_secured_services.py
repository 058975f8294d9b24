"""A worker of Connect and a broker's metrics that ask for TLS and logins, behind one console: what it shows of them,
what it says when it may not, and that no password is ever seen."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.common.passwords import hashed
from ottla.console.settings import ConsoleSettings
from ottla.console.web.console import Console
from ottla.testing import Broker, Connect, Registry
from tests.cli.command import Cli
from tests.connect.test_connectors import eventually
from tests.console.running import RunningConsole
from tests.support.certificates import Certificates

PASSWORD = "p@ss: w/rd"
WRITTEN = "p%40ss%3A%20w%2Frd"
WRONG = "wr0ng-passw0rd"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("users") / "users.toml"
    path.write_text(f'[users.anna]\npassword = "{hashed(PASSWORD)}"\n')
    return path


@pytest.fixture(scope="module")
def broker(certificates: Certificates, users: Path) -> Iterator[Broker]:
    settings = {
        "ottla.metrics.listen": "127.0.0.1:0",
        "ottla.metrics.ssl.certificate.location": str(certificates.issue("127.0.0.1")),
        "ottla.metrics.users.file": str(users),
    }
    with Broker(settings) as running:
        yield running


@pytest.fixture(scope="module")
def metrics(broker: Broker) -> str:
    endpoint = broker.server.metrics
    assert endpoint is not None
    return endpoint.url


def rest_settings(folder: Path, certificates: Certificates, **more: str) -> dict[str, str]:
    credentials = folder / "credentials.properties"
    credentials.write_text(f"anna={PASSWORD}\n")
    given = {
        "keystore.type": "PEM",
        "keystore.location": str(certificates.issue("127.0.0.1")),
        "truststore.type": "PEM",
        "truststore.location": str(certificates.ca),
        **more,
    }
    return {
        "listeners": "https://127.0.0.1:0",
        **{f"listeners.https.ssl.{name}": value for name, value in given.items()},
        "rest.extension.classes": "BasicAuthSecurityRestExtension",
        "ottla.rest.credentials.file": str(credentials),
    }


@pytest.fixture(scope="module")
def worker(broker: Broker, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    settings = rest_settings(tmp_path_factory.mktemp("worker"), certificates)
    with Connect(broker.bootstrap_servers, spark=object(), login=("anna", PASSWORD), **settings) as running:
        yield running


def with_login(url: str, password: str = WRITTEN) -> str:
    return url.replace("https://", f"https://anna:{password}@")


def test_a_worker_is_asked_with_login_and_tls(broker: Broker, worker: Connect, certificates: Certificates) -> None:
    worker.create("nightly", connector_class="FileStreamSource", file="/nowhere", topic="lines")
    settings: dict[str, Any] = {"connect": (with_login(worker.url),), "connect_ca": str(certificates.ca)}
    with RunningConsole(broker.bootstrap_servers, **settings) as running:
        visitor = running.visitor()
        shown = [visitor.get(page).text for page in ("/connectors", "/connectors/nightly", "/connectors-new")]
        assert ">nightly<" in shown[0] and worker.url in shown[0] and "FileStreamSourceConnector" in shown[2]
        shown.append(visitor.post("/connectors/nightly/control", {"action": "pause"}).text)
        eventually(lambda: worker.ask("GET", "/connectors/nightly/status")[1]["connector"]["state"], "PAUSED".__eq__)
        shown.append(visitor.post("/connectors/nightly/delete", {"confirm": "nightly"}).text)
        assert worker.ask("GET", "/connectors/nightly")[0] == 404
        assert not any(word in page for page in shown for word in (WRITTEN, PASSWORD, "anna"))


@pytest.mark.parametrize(
    ("login", "trusts", "told"),
    [
        ("", True, "asks for a login: give --connect with it"),
        (f"anna:{WRONG}@", True, "does not take the login that --connect has for it."),
        (f"anna:{WRITTEN}@", False, "its certificate is not trusted"),
    ],
)
def test_a_worker_that_lets_nobody_in_is_one_sentence(
    broker: Broker,
    worker: Connect,
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    login: str,
    trusts: bool,
    told: str,
) -> None:
    url = worker.url.replace("https://", f"https://{login}")
    with caplog.at_level(logging.DEBUG):
        settings: dict[str, Any] = {"connect": (url,), "connect_ca": str(certificates.ca) if trusts else None}
        with RunningConsole(broker.bootstrap_servers, **settings) as running:
            visitor = running.visitor()
            pages = [visitor.get(page) for page in ("/connectors", "/connectors/nightly", "/connectors-new")]
    for page in pages:
        assert told in page.text and "Traceback" not in page.text and page.status_code < 504
        assert WRONG not in page.text and WRITTEN not in page.text
    assert WRONG not in caplog.text and WRITTEN not in caplog.text and "Traceback" not in caplog.text


def test_a_worker_that_wants_certificates_is_shown_one(
    broker: Broker, certificates: Certificates, tmp_path: Path
) -> None:
    settings = rest_settings(tmp_path, certificates, **{"client.auth": "required"})
    shown: dict[str, Any] = {"connect_ca": str(certificates.ca)}
    settings |= {f"{kind}.storage.topic": f"mutual-{kind}" for kind in ("config", "offset", "status")}
    settings["group.id"] = "mutual"
    with Connect(broker.bootstrap_servers, spark=object(), login=None, **settings) as running:
        shown["connect"] = (with_login(running.url),)
        with RunningConsole(broker.bootstrap_servers, **shown) as console:
            refused = console.visitor().get("/connectors").text
            assert "Kafka Connect does not answer at" in refused and WRITTEN not in refused
        shown["connect_certificate"] = own = str(certificates.issue("console"))
        with RunningConsole(broker.bootstrap_servers, **shown) as console:
            assert "FileStreamSourceConnector" in console.visitor().get("/connectors-new").text
        where = ("--url", shown["connect"][0], "--ca", shown["connect_ca"])
        assert Cli(broker.bootstrap_servers)("connect", "plugins", *where).status == 1
        told = Cli(broker.bootstrap_servers)("connect", "plugins", *where, "--certificate", own)
        assert told.status == 0 and "FileStreamSourceConnector" in told.out, told.err
        told = Cli(broker.bootstrap_servers)("connect", "plugins", *where, "--certificate", "nowhere.pem")
        assert told.status == 1 and "is no PEM file" in told.err


def test_metrics_are_read_with_login_and_tls(broker: Broker, metrics: str, certificates: Certificates) -> None:
    settings: dict[str, Any] = {"metrics": (with_login(metrics),), "metrics_ca": str(certificates.ca)}
    with RunningConsole(broker.bootstrap_servers, interval_s=0.2, **settings) as running:
        visitor = running.visitor()
        eventually(lambda: running.console.metrics.rows[0].requests_per_s, lambda rate: rate is not None)
        pages = [visitor.get(page).text for page in ("/", "/brokers", "/latency")]
        assert f"{metrics}</td>" in pages[0]
        assert not any(word in page for page in pages for word in (WRITTEN, PASSWORD, "anna"))


def test_metrics_that_let_nobody_in_are_one_sentence_each(
    broker: Broker, metrics: str, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    """And hide nothing of the others: one that lets us in stands beside them, and one that speaks no HTTP."""
    urls = (
        metrics,
        metrics.replace("127.0.0.1", f"anna:{WRONG}@127.0.0.1") + "/metrics",
        with_login(metrics) + "/metrics/of/nobody",
        f"http://{broker.bootstrap_servers}",
        with_login(metrics).replace("127.0.0.1", "localhost"),
    )
    with caplog.at_level(logging.DEBUG):
        settings: dict[str, Any] = {"metrics": (*urls, "http://127.0.0.1:1"), "metrics_ca": str(certificates.ca)}
        with RunningConsole(broker.bootstrap_servers, interval_s=0.2, **settings) as running:
            rows = running.console.metrics.rows
            eventually(lambda: running.console.metrics.rows, lambda now: now is not rows)
            problems = [row.problem or "" for row in running.console.metrics.rows]
            page = running.visitor().get("/latency").text
    assert "asks for a login: give --metrics with it" in problems[0]
    assert problems[1] == "it does not take the login that --metrics has for it."
    assert problems[2] == "it answers 404 Not Found: look at the address of --metrics."
    assert "it does not answer" in problems[3]
    assert "certificate is not trusted" in problems[4] and "--metrics-ca FILE" in problems[4]
    assert problems[5] == "it does not answer (Connection refused)."
    assert problems[1] in page and WRONG not in page and WRITTEN not in page
    assert WRONG not in caplog.text and WRITTEN not in caplog.text and "Traceback" not in caplog.text


def test_a_registry_that_wants_a_certificate_is_shown_one(broker: Broker, certificates: Certificates) -> None:
    server, ca = str(certificates.issue("127.0.0.1")), str(certificates.ca)
    with Registry(broker.bootstrap_servers, certificate=server, client_ca=ca) as registry:
        given = {"registry": registry.url, "registry_ca": ca}
        with RunningConsole(broker.bootstrap_servers, **given) as console:
            page = console.visitor().get("/schemas").text
            assert "0 subjects" not in page and "There are no schemas" not in page and "no registry answers" in page
        own = str(certificates.issue("console"))
        with RunningConsole(broker.bootstrap_servers, **given, registry_certificate=own) as console:
            assert "0 subjects" in console.visitor().get("/schemas").text


@pytest.mark.parametrize("kind", ["connect", "metrics", "registry"])
@pytest.mark.parametrize(
    ("address", "told"),
    [
        (f"https://anna:{WRONG}#x@host", "is no address of"),
        (f"ftp://anna:{WRONG}@host", "is no address of"),
        (f"https://anna:{WRONG}@", "is no address of"),
        (f"anna:{WRONG}@[::1", "is no address of"),
    ],
)
def test_an_address_that_is_none_is_refused_at_the_start_without_its_password(
    kind: str, address: str, told: str
) -> None:
    given: dict[str, Any] = {kind: address if kind == "registry" else (address,)}
    with pytest.raises(OttlaError, match=told) as refused:
        Console(ConsoleSettings("x:1", **given))
    assert WRONG not in str(refused.value)


@pytest.mark.parametrize("option", ["connect_ca", "metrics_ca", "registry_ca", "connect_certificate"])
def test_a_file_that_is_no_pem_is_refused_at_the_start(option: str, tmp_path: Path) -> None:
    kind = option.partition("_")[0]
    for file in (tmp_path / "nowhere.pem", tmp_path / "empty.pem"):
        given: dict[str, Any] = {kind: "https://h" if kind == "registry" else ("https://h",), option: str(file)}
        with pytest.raises(OttlaError, match="PEM"):
            Console(ConsoleSettings("x:1", **given))
        (tmp_path / "empty.pem").write_text("")
