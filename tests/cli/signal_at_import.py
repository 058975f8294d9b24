"""Runs many command lines, each in a child of this one process, and sends each a signal when it imports a module.

stdin is JSON: `[[[word, ...], module, signal number], ...]`, stdout `[[status, stderr], ...]`. A child is forked from
an interpreter that has imported next to nothing, so it goes the way that `python -m ottla` goes, without its start.
After the cases whose module is one that all verbs need, this process imports those itself, once for all that follow.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
import tempfile

SHARED = ("ottla.cli.main", "click", "click.core", "asyncio")


class Interrupter:
    """Finds no module. The signal is there when `find_spec` is over, which is before the module is run."""

    def __init__(self, module: str, number: int) -> None:
        self.module = module
        self.number = number
        self.is_sent = False

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == self.module and not self.is_sent:
            self.is_sent = True
            os.kill(os.getpid(), self.number)


def main() -> None:
    # What a shell starts in the background, tests among it, is not to be bothered by Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cases = json.load(sys.stdin)
    outcomes = []
    for words, module, number in cases:
        if module not in SHARED:
            for shared in SHARED:
                importlib.import_module(shared)
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(said.fileno(), 2)
                sys.argv = ["ottla", *words]
                sys.meta_path.insert(0, Interrupter(module, number))  # type: ignore[arg-type]
                runpy.run_module("ottla", run_name="__main__")
                return
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            outcomes.append([status, said.read().decode()])
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
