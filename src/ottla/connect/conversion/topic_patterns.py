"""Java's regular expressions over names of topics (`topics.regex`, RegexRouter, TopicNameMatches), in bounded time.

A matcher that goes back over a name again and again (`(a+)+`) would hold the interpreter, and with it every connector
of the worker, for as long as it likes. So RE2 matches, in linear time, whatever it knows. What it does not know
(lookahead, references to groups) Python matches, in a process of its own that is ended when it takes too long.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence

from ottla.common.linear_regex import BadPattern, compile_pattern
from ottla.connect.api import ConnectorFailure
from ottla.connect.conversion.java_regex import Found, compile_java

# Of a core: a machine that is busy is no fault of the expression.
_SECONDS_MAX = 5
_BUSY = 20
_KNOWN_MAX = 10_000
_PROGRAM = """
import json, re, resource, sys
pattern, names, limit = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
pattern = re.compile(pattern, re.ASCII)
def found(name):
    if pattern.fullmatch(name) is None:
        return None
    found = pattern.search(name)
    return name[:found.start()], name[found.end():], [found.group(), *found.groups()]
json.dump([found(name) for name in names], sys.stdout)
"""


class TopicPattern:
    def __init__(self, pattern: str, setting: str = "topics.regex") -> None:
        """`setting`: where it is from. Raises NotTranslated."""
        self._shown = f"{setting} '{pattern}'"
        compiled = compile_java(pattern)
        self._python, self._groups = compiled.pattern, dict(compiled.groupindex)
        try:
            self._linear = compile_pattern(self._python.replace(r"\Z", r"\z"))
        except (BadPattern, ImportError):  # an executor may have nothing but PySpark and PyArrow
            self._linear = None
        # What Python's matcher was asked: names come again and again.
        self._known: dict[str, Found | None] = {}

    def matching(self, names: Sequence[str]) -> list[str]:
        """Those that it matches as a whole. Raises ConnectorFailure."""
        if self._linear is not None:
            return [name for name in names if self._linear.fullmatch(name.encode()) is not None]
        self._ask(names)
        return [name for name in names if self._known[name] is not None]

    def found(self, name: str) -> Found | None:
        """What it finds first in a name that it matches as a whole: Java looks anew from the start, and may find less
        than that. Raises ConnectorFailure."""
        if self._linear is None:
            self._ask([name])
            return self._known[name]
        text = name.encode()
        if self._linear.fullmatch(text) is None:
            return None
        found = self._linear.search(text)
        groups = (None if group is None else group.decode() for group in (found.group(), *found.groups()))
        return Found(text[: found.start()].decode(), text[found.end() :].decode(), tuple(groups), self._groups)

    def _ask(self, names: Iterable[str]) -> None:
        if len(self._known) > _KNOWN_MAX:
            self._known.clear()
        if not (unknown := [name for name in dict.fromkeys(names) if name not in self._known]):
            return
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM]
        asked = json.dumps([self._python, unknown, _SECONDS_MAX])
        try:
            done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=_SECONDS_MAX * _BUSY)
            was_ended = done.returncode < 0
        except subprocess.TimeoutExpired:
            was_ended = True
        if was_ended:
            raise ConnectorFailure(
                f"{self._shown} takes too long on the names of the topics: write it without repetitions of "
                "repetitions, or name the topics."
            )
        if done.returncode:
            raise ConnectorFailure(f"{self._shown} cannot be tried: {done.stderr.strip()[-200:]}")
        for name, found in zip(unknown, json.loads(done.stdout), strict=True):
            self._known[name] = found and Found(found[0], found[1], tuple(found[2]), self._groups)
