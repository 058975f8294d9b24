"""`ottla console` as people start it: its one line, its refusals, its end."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from ottla.testing import Broker

OTTLA = [sys.executable, "-m", "ottla", "console"]


def test_it_prints_where_it_is_serves_and_ends_with_a_signal(broker: Broker) -> None:
    command = [*OTTLA, "--listen", "127.0.0.1:0", "-b", broker.bootstrap_servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            line = running.stdout.readline()
            assert line.startswith("ready http://127.0.0.1:")
            with urllib.request.urlopen(line.split()[1] + "/topics", timeout=60) as page:
                assert page.status == 200
        finally:
            running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--listen", "0.0.0.0:0"], "others can reach"),
        (["--listen", "here"], "expected HOST:PORT"),
        (["--users", "u", "--login", "sasl"], "choose one"),
        (["--admin", "anna"], "--login sasl"),
        (["--key", "k.pem"], "without --certificate"),
        (["--mask", "orders"], "--mask takes"),
        (["--users", "nowhere.toml"], "cannot read nowhere.toml"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(options: list[str], sentence: str, tmp_path: Path) -> None:
    done = subprocess.run([*OTTLA, *options], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode in (1, 2) and sentence in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "names no user"),
        ("[users.a]\n", "needs a password"),
        ('[users.a]\npassword = "x"\nrole = "king"\n', "role of [users.a]"),
        ('[users.a]\npassword = "x"\nrights = 1\n', "has 'rights'"),
        ('[users.a]\npassword = "scrypt:zz"\n', "is no hash"),
        ("users = [", "is not valid TOML"),
    ],
)
def test_a_file_of_users_that_is_wrong_says_where(text: str, sentence: str, tmp_path: Path) -> None:
    from ottla.common.errors import OttlaError
    from ottla.console.web.users import load_users

    file = tmp_path / "users.toml"
    file.write_text(text)
    with pytest.raises(OttlaError) as refusal:
        load_users(str(file))
    assert sentence in str(refusal.value)
