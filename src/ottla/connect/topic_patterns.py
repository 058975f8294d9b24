"""Java's regular expressions over the names of a cluster's topics, as in `topics.regex`, in bounded time.

A matcher that goes back over a name again and again (`(a+)+`) would hold the interpreter, and with it every connector
of the worker, for as long as it likes. So RE2 matches, in linear time, whatever it knows. What it does not know
(lookahead, references to groups) Python matches, in a process of its own that is ended when it takes too long.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from ottla.common.linear_regex import BadPattern, compile_pattern
from ottla.connect.api import ConnectorFailure
from ottla.connect.conversion.java_regex import compile_java

# Of a core: a machine that is busy is no fault of the expression.
_SECONDS_MAX = 5
_BUSY = 20
_PROGRAM = (
    "import json, re, resource, sys; pattern, names, limit = json.load(sys.stdin); "
    "resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)); found = re.compile(pattern, re.ASCII); "
    "json.dump([name for name in names if found.fullmatch(name)], sys.stdout)"
)


class TopicPattern:
    def __init__(self, pattern: str, setting: str = "topics.regex") -> None:
        """`setting`: where it is from. Raises NotTranslated."""
        self._shown = f"{setting} '{pattern}'"
        self._python = compile_java(pattern).pattern
        try:
            self._linear = compile_pattern(self._python.replace(r"\Z", r"\z"))
        except (BadPattern, ModuleNotFoundError):  # an executor may have nothing but PySpark and PyArrow
            self._linear = None
        # What was asked last: topics rarely change.
        self._names: tuple[str, ...] = ()
        self._found: list[str] = []

    def matching(self, names: Sequence[str]) -> list[str]:
        """Those that it matches as a whole. Raises ConnectorFailure."""
        if self._linear is not None:
            return [name for name in names if self._linear.fullmatch(name.encode()) is not None]
        if tuple(names) != self._names:
            self._found, self._names = self._by_python(names), tuple(names)
        return self._found

    def _by_python(self, names: Sequence[str]) -> list[str]:
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM]
        asked = json.dumps([self._python, list(names), _SECONDS_MAX])
        try:
            done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=_SECONDS_MAX * _BUSY)
            was_ended = done.returncode < 0
        except subprocess.TimeoutExpired:
            was_ended = True
        if was_ended:
            raise ConnectorFailure(
                f"{self._shown} takes too long on the names of the cluster's topics: write it without "
                "repetitions of repetitions, or name the topics."
            )
        if done.returncode:
            raise ConnectorFailure(f"{self._shown} cannot be tried: {done.stderr.strip()[-200:]}")
        found: list[str] = json.loads(done.stdout)
        return found
