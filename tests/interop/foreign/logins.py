"""Seven clients that log in: each asks a broker one question, with settings by librdkafka's names.

`token` is what OAUTHBEARER shows. Whoever is not let in raises `NotLetIn` with what the client says of it.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interop.foreign.agents import AgentError
from tests.interop.foreign.clients import AgentClient, Client
from tests.support.refusals import refusals

Settings = Mapping[str, str]
NAMES = [
    "confluent",
    "kafka-python",
    "aiokafka",
    "kcat",
    pytest.param("java", marks=pytest.mark.jvm),
    pytest.param("franz-go", marks=pytest.mark.foreign),
    pytest.param("kafkajs", marks=pytest.mark.foreign),
]
_JAVA_MODULES = {"PLAIN": "plain.PlainLoginModule", "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule"}
_JAVA_SCRAM = "scram.ScramLoginModule"


class NotLetIn(Exception):
    pass


def login(name: str, clients: Callable[[str], Client], bootstrap: str, settings: Settings, folder: Path) -> None:
    """Raises NotLetIn."""
    own: dict[str, Callable[..., None]] = {
        "confluent": _confluent,
        "kafka-python": _kafka_python,
        "aiokafka": _aiokafka,
        "kcat": _kcat,
    }
    if name in own:
        own[name](bootstrap, settings)
        return
    client = clients(name)
    assert isinstance(client, AgentClient)
    try:
        if name == "java":
            client.agent.call("describe_cluster", bootstrap=bootstrap, settings=_for_java(settings, folder))
        else:
            client.agent.call("login", bootstrap=bootstrap, settings=dict(settings))
    except AgentError as error:
        raise NotLetIn(str(error)) from None


def _librdkafka(settings: Settings) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "token"}


def _confluent(bootstrap: str, settings: Settings) -> None:
    given = {"bootstrap.servers": bootstrap, **_librdkafka(settings)}
    if "token" in settings:
        given["oauth_cb"] = lambda _: (settings["token"], 4_102_444_800, "ada", {})
    if told := refusals(given):
        raise NotLetIn(" ".join(map(str, told)))


def _kcat(bootstrap: str, settings: Settings) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    with _issuer(settings.get("token", "")) as url:
        more = _librdkafka(settings)
        if "token" in settings:
            more |= {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "kcat",
                "sasl.oauthbearer.client.secret": "x",
                "sasl.oauthbearer.token.endpoint.url": url,
            }
        flags = [part for one in more.items() for part in ("-X", "=".join(one))]
        command = ["kcat", "-b", bootstrap, "-P", "-t", "logins", "-X", "message.timeout.ms=8000", *flags]
        outcome = subprocess.run(command, input=b"hello\n", capture_output=True, timeout=60)
    if b"not supported in this build" in outcome.stderr:
        pytest.skip("kcat is built without OIDC: it has no way to show a token that is signed")
    if outcome.returncode != 0:
        raise NotLetIn(outcome.stderr.decode(errors="replace"))


@contextmanager
def _issuer(token: str) -> Iterator[str]:
    """Where kcat, which is given no token, asks for one."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 600}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


def _python_settings(settings: Settings) -> dict[str, Any]:
    """What kafka-python and aiokafka have in common."""
    given = {"security_protocol": settings["security.protocol"]}
    if "sasl.mechanism" in settings:
        given["sasl_mechanism"] = settings["sasl.mechanism"]
    if "sasl.username" in settings:
        given |= {"sasl_plain_username": settings["sasl.username"], "sasl_plain_password": settings["sasl.password"]}
    return given


def _kafka_python(bootstrap: str, settings: Settings) -> None:
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return settings["token"]

    given = _python_settings(settings) | {"ssl_cafile": settings.get("ssl.ca.location")}
    if "token" in settings:
        given["sasl_oauth_token_provider"] = Provider()
    if "ssl.certificate.location" in settings:
        given |= {"ssl_certfile": settings["ssl.certificate.location"], "ssl_keyfile": settings["ssl.key.location"]}
    try:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=5_000, **given)
    except (KafkaError, OSError) as error:
        raise NotLetIn(repr(error)) from None
    admin.close()


def _aiokafka(bootstrap: str, settings: Settings) -> None:
    from aiokafka import AIOKafkaClient
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.errors import KafkaError

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return settings["token"]

    context = ssl.create_default_context(cafile=settings["ssl.ca.location"])
    if "ssl.certificate.location" in settings:
        context.load_cert_chain(settings["ssl.certificate.location"], settings["ssl.key.location"])
    given = _python_settings(settings) | {"ssl_context": context}
    if "token" in settings:
        given["sasl_oauth_token_provider"] = Provider()

    async def ask() -> None:
        client = AIOKafkaClient(bootstrap_servers=bootstrap, request_timeout_ms=10_000, **given)
        try:
            await client.bootstrap()
        except (KafkaError, OSError) as error:
            raise NotLetIn(repr(error)) from None
        finally:
            await client.close()

    asyncio.run(ask())


def _for_java(settings: Settings, folder: Path) -> dict[str, str]:
    given = {
        "security.protocol": settings["security.protocol"],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": settings["ssl.ca.location"],
        "default.api.timeout.ms": "20000",
        "request.timeout.ms": "10000",
    }
    if "ssl.certificate.location" in settings:
        given |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": settings["ssl.certificate.location"]}
    mechanism = settings.get("sasl.mechanism")
    if mechanism is None:
        return given
    module = f"org.apache.kafka.common.security.{_JAVA_MODULES.get(mechanism, _JAVA_SCRAM)}"
    options = ""
    if "sasl.username" in settings:
        options = f' username="{settings["sasl.username"]}" password="{settings["sasl.password"]}"'
    given |= {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{module} required{options};"}
    if "token" in settings:
        file = folder / "token.jwt"
        file.write_text(settings["token"])
        handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        given |= {"sasl.oauthbearer.token.endpoint.url": file.as_uri(), "sasl.login.callback.handler.class": handler}
    return given
