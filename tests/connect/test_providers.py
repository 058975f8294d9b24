"""Secrets that configurations only refer to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.common.errors import OttlaError
from ottla.connect.worker.errors import Refused
from ottla.connect.worker.operations import checked
from ottla.connect.worker.providers import providers_of, resolved
from ottla.connect.worker.settings import parse_worker

PREFIX = "org.apache.kafka.common.config.provider."
WORKER = {
    "config.providers": "file, dir,env",
    "config.providers.file.class": f"{PREFIX}FileConfigProvider",
    "config.providers.dir.class": f"{PREFIX}DirectoryConfigProvider",
    "config.providers.env.class": f"{PREFIX}EnvVarConfigProvider",
}


def test_references_are_looked_up_and_everything_else_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets.properties").write_text("password=s3cret\n")
    monkeypatch.setenv("REGION", "north")
    config = {
        "a": f"jdbc:${{file:{tmp_path}/secrets.properties:password}}!",
        "b": f"${{dir:{tmp_path}:secrets.properties}}",
        "c": "${env:REGION}-1",
        "d": "${topic} and ${other:x} stay",
    }
    assert resolved(config, providers_of(WORKER)).config == {
        "a": "jdbc:s3cret!",
        "b": "password=s3cret\n",
        "c": "north-1",
        "d": "${topic} and ${other:x} stay",
    }


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("${file:/nowhere:x}", "cannot be looked up: cannot read /nowhere"),
        ("${env:NOBODY_SETS_THIS}", "there is no such value"),
        ("${dir:/etc:../etc/passwd}", "there is no such value"),
    ],
)
def test_what_is_not_there_is_told(reference: str, sentence: str) -> None:
    with pytest.raises(OttlaError) as caught:
        resolved({"secret": reference}, providers_of(WORKER))
    assert str(caught.value).startswith(f"secret refers to {reference}") and sentence in str(caught.value)


def test_other_providers_are_refused_at_start() -> None:
    with pytest.raises(OttlaError, match=r"config.providers.vault.class is 'com.example.Vault'"):
        providers_of({"config.providers": "vault", "config.providers.vault.class": "com.example.Vault"})


def test_what_the_worker_does_not_allow_is_not_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may ask a worker could else read every file that the worker can."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open-too").mkdir()
    for name in ("open/a", "open-too/a", "a"):
        (tmp_path / name).write_text("k=v\n")
    monkeypatch.setenv("APP_REGION", "north")
    monkeypatch.setenv("REGION", "south")
    providers = providers_of(
        {
            **WORKER,
            "config.providers.file.param.allowed.paths": f"{tmp_path}/open, /etc",
            "config.providers.dir.param.allowed.paths": f"{tmp_path}/open",
            "config.providers.env.param.allowlist.pattern": "APP_.*",
        }
    )
    given = {"a": f"${{file:{tmp_path}/open/a:k}}", "b": f"${{dir:{tmp_path}/open:a}}", "c": "${env:APP_REGION}"}
    assert resolved(given, providers).config == {"a": "v", "b": "k=v\n", "c": "north"}
    for refused in (
        f"${{file:{tmp_path}/a:k}}",
        f"${{file:{tmp_path}/open/../a:k}}",
        f"${{file:{tmp_path}/open-too/a:k}}",
        f"${{dir:{tmp_path}:a}}",
        f"${{dir:{tmp_path}/open/..:a}}",
        "${env:REGION}",
    ):
        with pytest.raises(OttlaError, match="the worker does not allow"):
            resolved({"secret": refused}, providers)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("config.providers.file.param.allowed.paths", "secrets"),
        ("config.providers.dir.param.allowed.paths", "/there/is/no/such/folder"),
        ("config.providers.env.param.allowlist.pattern", "("),
    ],
)
def test_a_limit_that_cannot_be_understood_is_refused_at_start(setting: str, value: str) -> None:
    with pytest.raises(OttlaError, match=setting):
        providers_of({**WORKER, setting: value})


def test_what_is_wrong_with_a_secret_is_told_without_it(tmp_path: Path) -> None:
    """The reference is what a configuration shows, and what an error may."""
    (tmp_path / "port").write_text("s3cret\n")
    settings = parse_worker({**WORKER, "bootstrap.servers": "localhost:9"})
    reference = f"${{dir:{tmp_path}:port}}"
    config = {
        "connector.class": "HttpSink",
        "topics": "t",
        "http.url": f"ftp://{reference}",
        "batch.records": reference,
    }
    with pytest.raises(Refused) as caught:
        checked(SimpleNamespace(settings=settings), "x", config)  # type: ignore[arg-type]
    told = caught.value.message
    assert "s3cret" not in told
    assert f"Invalid value {reference} for configuration batch.records: Not a number" in told
    assert f"Invalid value ftp://{reference} for configuration http.url" in told
