"""`keyless_records`, compiled if possible, and `keyless_steps` for where it is not. `walk_pure.py` says what they do.

The broker needs this, and may have been installed without PyArrow: nothing here imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.kernel.loading import is_compiled, load
from ottla.kernel.walk_pure import Keyless, keyless_steps

if TYPE_CHECKING:
    from ottla.kernel.walk_pure import keyless_records

    IS_COMPILED: bool
else:
    _module = load("_walk", "walk_pure")
    keyless_records = _module.keyless_records
    IS_COMPILED = is_compiled(_module)

__all__ = ["IS_COMPILED", "Keyless", "keyless_records", "keyless_steps"]
