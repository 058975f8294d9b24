"""`ottla top`: as JSON, as text, and in a terminal with keys."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fcntl import ioctl

from ottla.cli.top.figures import BrokerLine, Figures, GroupLine, TopicLine
from ottla.cli.top.screen import HELP, Shown, screen
from ottla.cli.top.terminal import Looking
from tests.cli.command import Cli

_PATIENCE_S = 60.0
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def _figures(topics: int = 3) -> Figures:
    return Figures(
        at_ms=0,
        brokers=(BrokerLine(1, "a:1", True, 3, 3, 0, 10.0), BrokerLine(2, "gone", False, 0, 3, 3, 0.0)),
        topics=tuple(TopicLine(f"t{number:03}", 1, float(number), None, 0, 0, 0) for number in range(topics)),
        groups=(
            GroupLine("fine", "OK", "Stable", 1, 0, 0.0, 5.0, ""),
            GroupLine("stuck", "ERROR", "Stable", 1, 7, 3.0, 0.0, "t-0 STALL: is at offset 1 all the time"),
        ),
        partitions=3,
        under_replicated=3,
        offline=0,
        advice="broker 2 is gone",
        troubles=(),
    )


def _text(lines: list[str]) -> list[str]:
    return [_COLOURS.sub("", line) for line in lines]


def test_a_screen_has_the_size_of_the_terminal_whatever_there_is() -> None:
    for topics, width, height in ((0, 80, 24), (500, 40, 10), (3, 200, 6)):
        lines = _text(screen(_figures(topics), Shown("topics"), width, height))
        assert len(lines) == height
        assert max(map(len, lines)) <= width
        assert lines[-1] == HELP[:width]


def test_names_that_others_have_chosen_do_not_move_the_cursor_nor_break_lines() -> None:
    evil = GroupLine("a\x1b[2J\nb" + "東" * 50, "ERROR", "Stable", 1, 7, 3.0, 0.0, "\x1b[10;10H")
    figures = replace(_figures(), groups=(evil,), troubles=("broker 1\r\x1b[K says\x07",))
    lines = screen(figures, Shown("groups"), 60, 12)
    assert not any(re.search(r"[\x00-\x1a\x1c-\x1f]|\x1b(?!\[[0-9;]*m)", line) for line in lines)
    columns = [sum(1 + (unicodedata.east_asian_width(one) == "W") for one in line) for line in _text(lines)]
    assert len(lines) == 12 and max(columns) <= 60


def test_an_answer_that_nobody_expected_is_told_and_the_next_look_comes() -> None:
    looks = iter([KeyError("odd"), _figures()])

    def look() -> Figures:
        answer = next(looks)
        if isinstance(answer, Exception):
            raise answer
        looked.set()
        return answer

    looked, looking = threading.Event(), Looking(look, 0.01)
    looking.start()
    assert looked.wait(_PATIENCE_S)
    looking.stop()


def test_topics_are_by_rate_and_keys_change_that() -> None:
    shown = Shown("topics")
    assert _text(screen(_figures(), shown, 80, 24))[5].startswith("t002")
    shown = shown.pressed("s", page=10)
    assert _text(screen(_figures(), shown, 80, 24))[5].startswith("t000")
    shown = shown.pressed("r", page=10)
    assert _text(screen(_figures(), shown, 80, 24))[5].startswith("t002")


def test_scrolling_ends_where_the_lines_do() -> None:
    shown = Shown("topics", order=1)
    for _ in range(100):
        shown = shown.pressed("page down", page=10)
    lines = _text(screen(_figures(50), shown, 80, 20))
    assert lines[-2].startswith("t049")


def test_what_is_wrong_is_said_first_and_the_worst_group_is_named() -> None:
    lines = _text(screen(_figures(), Shown("groups"), 120, 24))
    assert lines[1] == "! 3 under-replicated (broker 2 is gone); 1 groups in error"
    assert lines[5].split()[:3] == ["stuck", "ERROR", "7"]
    assert "gone" in _text(screen(_figures(), Shown("topics").pressed("left", page=5), 80, 24))[6]


def test_one_look_as_json_and_as_text(cli: Cli, name: str) -> None:
    cli.ok("topic", "create", name, "-p", "3")
    cli.ok("produce", name, "a", "b", "c", "-q")
    cli.ok("consume", name, "-g", name, "-e")
    cli.ok("produce", name, "d", "-q")
    found = cli.ok("top", "--once", "--output", "json").data
    (topic,) = [line for line in found["topics"] if line["topic"] == name]
    assert (topic["partitions"], topic["lag"], topic["groups"]) == (3, 1, 1)
    (group,) = [line for line in found["groups"] if line["group"] == name]
    assert (group["lag"], group["members"]) == (1, 0)
    assert [line["is_controller"] for line in found["brokers"]] == [True]
    lines = cli.ok("top", "--once").lines
    assert any(line.split()[0] == name for line in lines if line)


@contextmanager
def _terminal(cli: Cli, *arguments: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
    process = subprocess.Popen(
        [*cli.command, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=cli.variables() | {"TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield ours, process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _until(terminal: int, wanted: str) -> str:
    """What came until this is there."""
    got = ""
    deadline = time.monotonic() + _PATIENCE_S
    while wanted not in got:
        assert time.monotonic() < deadline, got
        if select.select([terminal], [], [], 1.0)[0]:
            got += os.read(terminal, 65_536).decode(errors="replace")
    return got


def test_in_a_terminal_keys_change_the_view_and_q_leaves_it_as_it_was(cli: Cli, name: str) -> None:
    cli.ok("topic", "create", name)
    with _terminal(cli, "top", "--interval", "0.2") as (terminal, process):
        echo = termios.tcgetattr(terminal)[3] & termios.ECHO
        first = _until(terminal, "UNDER-REPLICATED")
        assert "\x1b[?1049h" in first
        os.write(terminal, b"\t")
        _until(terminal, "READ/S")
        os.write(terminal, b"\x1b[C")
        _until(terminal, "REPLICAS")
        os.write(terminal, b"s")
        _until(terminal, "by rate")
        os.write(terminal, b"q")
        _until(terminal, "\x1b[?1049l")
        assert process.wait(_PATIENCE_S) == 0
        assert termios.tcgetattr(terminal)[3] & termios.ECHO == echo


def test_nobody_there_is_one_sentence(cli: Cli) -> None:
    assert "cannot reach any broker" in Cli("127.0.0.1:1").fails(1, "top", "--once")
