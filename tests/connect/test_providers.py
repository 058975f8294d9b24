"""Secrets that configurations only refer to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import OttlaError
from ottla.connect.worker.providers import providers_of, resolved

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
    assert resolved(config, providers_of(WORKER)) == {
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
