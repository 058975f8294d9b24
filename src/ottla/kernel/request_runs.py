"""`Times` and `Run`, compiled if possible. `request_runs_pure.py` says what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load
from ottla.kernel.request_runs_pure import VERSIONS, Taken

if TYPE_CHECKING:
    from ottla.kernel.request_runs_pure import Run, Times

    IS_COMPILED: bool
else:
    _module = load("_request_runs", "request_runs_pure")
    Run, Times = _module.Run, _module.Times
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "VERSIONS", "Run", "Taken", "Times"]
