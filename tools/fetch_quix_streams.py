"""Installs quix-streams from PyPI into a virtual environment of its own, `.cache/quix`: the benchmark runs it beside
Ottla Streams. Its dependencies are not ours, and ours are not its.

    python tools/fetch_quix_streams.py [--force]

Exit status 0: it is there (its Python is the last line of stdout). 1: it is not, with one sentence why.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "3.28.1"
FOLDER = Path(__file__).resolve().parent.parent / ".cache" / "quix"
PYTHON = FOLDER / "bin" / "python"
_DONE = FOLDER / f"quixstreams-{VERSION}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Install quix-streams for the benchmark.")
    parser.add_argument("--force", action="store_true", help="install it again even if it is there")
    if parser.parse_args().force or not _DONE.exists():
        shutil.rmtree(FOLDER, ignore_errors=True)
        steps = (
            [sys.executable, "-m", "venv", str(FOLDER)],
            [str(PYTHON), "-m", "pip", "install", "--quiet", f"quixstreams=={VERSION}"],
        )
        for step in steps:
            outcome = subprocess.run(step, capture_output=True, text=True)
            if outcome.returncode != 0:
                why = (outcome.stderr.strip() or "no reason given").splitlines()[-1]
                print(f"quix-streams is not available: {why}", file=sys.stderr)
                return 1
        _DONE.touch()
    print(PYTHON)
    return 0


if __name__ == "__main__":
    sys.exit(main())
