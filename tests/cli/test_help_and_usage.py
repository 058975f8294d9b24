"""What needs no broker: help, versions, completion, usage errors, profiles, and a broker that is not there."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.command import Cli
from tests.cli.command_tree import verbs
from tests.support.process import free_ports

VERBS = {
    "topic": ["list", "create", "describe", "alter", "delete", "trim", "offsets"],
    "group": ["list", "describe", "delete", "lag", "seek"],
    "config": ["get", "set", "unset"],
    "cluster": ["info", "health", "up", "status", "start", "restart", "kill", "pause", "resume", "down"],
    "partition": ["status", "move", "elect"],
    "zookeeper": ["start"],
    "monitor": ["start"],
    "log": ["dump", "requests"],
    "perf": ["produce", "consume", "e2e"],
}


@pytest.fixture
def cli() -> Cli:
    """Without a cluster."""
    return Cli()


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    return f"127.0.0.1:{free_ports(1)[0]}"


# -- help ----------------------------------------------------------------------------------------------------------


def test_help_names_every_command_and_leaves_the_heavy_modules_alone() -> None:
    program = (
        "import sys; from ottla.cli.main import run; status = run(['--help']);"
        "heavy = {'confluent_kafka', 'asyncio', 'ottla.server', 'ottla.broker', 'ottla.storage', 'tomllib'};"
        "print(status, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=Cli().variables(), timeout=30
    )
    assert done.stderr.strip() == "0 []"
    for name in ("start", "produce", "consume", "completion", *VERBS):
        assert f"  {name} " in done.stdout


@pytest.mark.parametrize("noun", VERBS)
def test_each_group_lists_its_verbs(cli: Cli, noun: str) -> None:
    text = cli.ok(noun, "--help").out
    for verb in VERBS[noun]:
        assert f"  {verb} " in text


def test_the_options_of_every_command_are_shown_apart(cli: Cli) -> None:
    text = cli.ok("consume", "-h").out
    own, _, shared = text.partition("Options of every command:")
    assert "--where" in own
    assert "--bootstrap-server" in shared
    assert "--dry-run" not in text
    own, _, shared = cli.ok("topic", "delete", "-h").out.partition("Options of every command:")
    assert "--dry-run" in own
    assert "--dry-run" not in shared


def test_what_is_offered_is_meant() -> None:
    """--dry-run and -y stand in the help of exactly the verbs that know what to do with them."""
    offered = {path: cli_help(command) for path, command in verbs().items()}
    assert {" ".join(path) for path, text in offered.items() if "--dry-run" in text} == {
        "produce",
        "log requests",
        "topic create",
        "topic alter",
        "topic delete",
        "topic trim",
        "partition move",
        "partition elect",
        "group seek",
        "group delete",
        "txn abort",
        "config set",
        "config unset",
        "user create",
        "user passwd",
        "user delete",
        "acl add",
        "acl remove",
        "quota set",
        "quota remove",
        "pipeline delete",
        "streams delete",
        "streams switch",
        "schema register",
        "schema delete",
        "connect create",
        "connect pause",
        "connect resume",
        "connect stop",
        "connect restart",
        "connect delete",
        "connect offsets",
    }
    assert {" ".join(path) for path, text in offered.items() if "--yes" in text} == {
        "topic delete",
        "topic trim",
        "partition elect",
        "group seek",
        "group delete",
        "txn abort",
        "user delete",
        "acl remove",
        "pipeline run",
        "pipeline delete",
        "streams run",
        "streams delete",
        "streams switch",
        "schema delete",
        "connect delete",
        "connect offsets",
    }


def test_every_option_and_every_verb_says_what_it_is_for() -> None:
    for path, command in verbs().items():
        assert command.help, path
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                said = re.sub(r"\[.*\]|repeatable", "", option.help or "", flags=re.IGNORECASE)
                assert re.search(r"\w", said), (path, option.opts)


def cli_help(command: click.Command) -> str:
    return command.get_help(click.Context(command))


def test_without_a_command_the_help_is_shown(cli: Cli) -> None:
    outcome = cli()
    assert outcome.status == 2
    assert "Usage: ottla" in outcome.err


def test_version(cli: Cli) -> None:
    from ottla import __version__

    assert cli.ok("--version").out == f"ottla {__version__}\n"


# -- usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["topi", "list"], "did you mean 'topic'?"),
        (["topic", "lst"], "did you mean 'list'?"),
        (["frobnicate"], "choose one of start, registry, zookeeper, security, console, produce"),
        (["topic", "list", "--colour"], "no such option"),
        (["topic", "create"], "missing argument 'TOPIC...'"),
        (["topic", "create", "t", "-p", "0"], "is less than"),
        (["topic", "create", "t", "-c", "retention.ms"], "-c takes name=value"),
        (["topic", "alter", "t"], "say what to alter"),
        (["topic", "describe"], "name topics"),
        (["partition", "move", "t:0"], "say where to"),
        (["partition", "move", "t:0", "--to", "1", "--cancel"], "say where to"),
        (["partition", "elect", "--unclean"], "name the partitions"),
        (["cluster", "up"], "missing option '--data-dir'"),
        (["cluster", "up", "--data-dir", "d", "-X", "node.id=7"], "node.id cannot be set"),
        (["-b", "x:1", "cluster", "kill", "1", "--data-dir", "d"], "has no -b"),
        (["--dry-run", "cluster", "down", "--data-dir", "d"], "'cluster down' has no --dry-run"),
        (["topic", "trim", "t", "--to", "soon"], "--to does not understand 'soon'"),
        (["topic", "offsets", "t", "--at", "soon"], "--at does not understand 'soon'"),
        (["-X", "nonsense", "topic", "list"], "-X takes name=value"),
        (["topic", "list", "--output", "xml"], "not one of"),
        (["consume", "t", "-o", "x:y"], "-o does not understand 'x:y'"),
        (["consume", "t", "-f", "%y"], "-f knows no '%y'"),
        (["consume", "t", "-f", "%s", "-J"], "exclude each other"),
        (["consume", "t", "--grep", "("], "not a regular expression"),
        (["consume", "t", "--where", "value >"], "expected a field or a value"),
        (["consume", "t", "--where", "open('x')"], "no field 'open'"),
        (["consume", "t", "-g", "g", "-o", "5"], "ottla group seek"),
        (["consume", "t", "-g", "g", "-p", "0"], "-p and -g exclude each other"),
        (["consume", "t", "-n", "-1"], "is less than"),
        (["produce", "t", "v", "-f", "%k%s"], "needs some text between %k and %s"),
        (["produce", "t", "v", "-H", "x"], "-H takes name=value"),
        (["produce", "t", "v", "-F", "file"], "not both"),
        (["produce", "t", "v", "-k", "a", "-K", ":"], "-k and -K exclude each other"),
        (["produce", "t", "v", "-z", "rar"], "not one of"),
        (["produce", "t", "-D", "", "v"], "-D needs at least one character"),
        (["group", "seek", "g", "--to", "sideways"], "--to does not understand"),
        (["config", "get", "planet", "x"], "not one of 'topic', 'broker', 'group'"),
        (["config", "set", "topic", "t", "x"], "takes name=value"),
        (["completion", "tcsh"], "not one of"),
        (["-b", "x:1", "start"], "--listen"),
        (["--dry-run", "perf", "produce", "t"], "'perf produce' has no --dry-run"),
        (["--dry-run", "start"], "'start' has no --dry-run"),
        (["pipeline", "--dry-run", "stop", "p"], "'pipeline stop' has no --dry-run"),
        (["pipeline", "run", "--dry-run", "p.py"], "no such option"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_status_2(cli: Cli, arguments: list[str], said: str) -> None:
    sentence = cli.fails(2, *arguments)
    assert sentence.startswith("ottla: ")
    assert said in sentence
    assert "--help'" in sentence


def test_a_topic_name_that_kafka_would_refuse_is_refused_here(cli: Cli, nobody: str) -> None:
    for arguments in (["topic", "create", "a b"], ["consume", "ä"], ["produce", "..", "v"], ["topic", "describe", ""]):
        assert "is not a topic name" in cli.fails(1, *arguments, "-b", nobody)


def test_an_unknown_librdkafka_setting_is_named(cli: Cli, nobody: str) -> None:
    assert "no setting 'fetch.mn.bytes'" in cli.fails(1, "-b", nobody, "-X", "fetch.mn.bytes=1", "topic", "list")
    assert "fetch.min.bytes" in cli.fails(1, "-b", nobody, "-X", "fetch.min.bytes=x", "topic", "list")


@pytest.mark.parametrize("address", ["foo:bar", "localhost:99999", "a b", "h:1,,h:2", "http://x/y", "::1"])
def test_an_address_that_is_none_is_refused(cli: Cli, address: str) -> None:
    assert "is not the address of a broker: write HOST:PORT" in cli.fails(1, "topic", "list", "-b", address)


# -- a broker that is not there ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["topic", "list"],
        ["consume", "t", "-e"],
        ["consume", "t", "-g", "g"],
        ["produce", "t", "v"],
        ["group", "list"],
        ["config", "get", "topic", "t"],
        ["cluster", "health"],
        ["perf", "e2e", "t"],
    ],
)
def test_a_refused_connection_is_told_without_waiting_for_a_time_out(
    cli: Cli, nobody: str, arguments: list[str]
) -> None:
    sentence = cli.fails(1, *arguments, "-b", nobody)
    assert sentence == f"ottla: cannot reach any broker at {nobody}: is it running? start one with `ottla start`"


def test_a_host_that_does_not_exist_is_told(cli: Cli) -> None:
    assert "cannot reach any broker at nohost.invalid:9092" in cli.fails(
        1, "topic", "list", "-b", "nohost.invalid:9092"
    )


@pytest.fixture
def mute_port() -> Iterator[int]:
    """Accepts connections and closes them: something that is not a Kafka broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        ended = threading.Event()

        def accept() -> None:
            while not ended.is_set():
                try:
                    server.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1]
        ended.set()
        thread.join()


def test_a_port_that_is_not_kafka_is_told_apart(cli: Cli, mute_port: int) -> None:
    sentence = cli.fails(1, "topic", "list", "-b", f"127.0.0.1:{mute_port}")
    assert "does not answer as a Kafka broker would" in sentence
    assert "security.protocol" in sentence


# -- where the cluster comes from ----------------------------------------------------------------------------------


def used_address(cli: Cli, *arguments: str) -> str:
    sentence = cli.fails(1, *arguments, "topic", "list")
    assert "cannot reach any broker at " in sentence
    return sentence.split("any broker at ")[1].split(": is it")[0]


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    folder = tmp_path / "ottla"
    folder.mkdir()
    text = '[profiles.prod]\nbootstrap.servers = "127.0.0.1:2"\nsecurity.protocol = "plaintext"\n'
    (folder / "profiles.toml").write_text(
        text + '[profiles.quoted]\n"bootstrap.servers" = ["127.0.0.1:3", "127.0.0.1:4"]\n'
    )
    return tmp_path


def test_flag_beats_override_beats_profile_beats_environment_beats_default(profiles: Path) -> None:
    settings = {"XDG_CONFIG_HOME": str(profiles)}
    assert used_address(Cli(environment=settings), "--profile", "prod") == "127.0.0.1:2"
    assert used_address(Cli(environment=settings), "--profile", "quoted") == "127.0.0.1:3,127.0.0.1:4"
    in_environment = Cli("127.0.0.1:1", settings)
    assert used_address(in_environment) == "127.0.0.1:1"
    assert used_address(in_environment, "--profile", "prod") == "127.0.0.1:2"
    assert used_address(in_environment, "--profile", "prod", "-X", "bootstrap.servers=127.0.0.1:5") == "127.0.0.1:5"
    assert used_address(in_environment, "--profile", "prod", "-b", "127.0.0.1:6") == "127.0.0.1:6"
    assert used_address(Cli("127.0.0.1:1", settings | {"OTTLA_PROFILE": "prod"})) == "127.0.0.1:1"
    assert used_address(Cli(None, settings | {"OTTLA_PROFILE": "prod"})) == "127.0.0.1:2"


def test_a_profile_that_is_not_there_is_explained(profiles: Path, tmp_path: Path) -> None:
    cli = Cli(environment={"XDG_CONFIG_HOME": str(profiles)})
    assert "has no profile 'dev' (it has: prod, quoted)" in cli.fails(1, "--profile", "dev", "topic", "list")
    without = Cli(environment={"OTTLA_PROFILES": str(tmp_path / "none.toml")})
    assert "create it with a section" in without.fails(1, "--profile", "dev", "topic", "list")
    (tmp_path / "bad.toml").write_text("[profiles")
    broken = Cli(environment={"OTTLA_PROFILES": str(tmp_path / "bad.toml")})
    assert "is not valid TOML" in broken.fails(1, "--profile", "dev", "topic", "list")


# -- completion ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(cli: Cli, shell: str, tmp_path: Path) -> None:
    script = cli.ok("completion", shell).out
    assert "_OTTLA_COMPLETE" in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        assert subprocess.run([shell, "-n", tmp_path / "script"], timeout=30).returncode == 0


def test_verbs_and_options_are_completed(nobody: str) -> None:
    def complete(words: str) -> list[str]:
        wanted = {"_OTTLA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
        return [line.partition(",")[2] for line in Cli(nobody, wanted).ok().lines if line]

    assert complete("ottla topi") == ["topic"]
    assert complete("ottla topic de") == ["describe", "delete"]
    assert "--where" in complete("ottla consume t --wh")
    assert complete("ottla config get b") == ["broker"]
    assert complete("ottla consume x") == []  # no broker to ask: silence, not an error


def test_a_closed_stdout_is_no_crash(cli: Cli) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = cli.start("--help", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    _, err = process.communicate(timeout=30)
    assert err == b""
    assert process.returncode == 0
