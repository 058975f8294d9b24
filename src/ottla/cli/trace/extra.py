"""What tracing needs beyond the core is installed with an extra; who has not gets one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.common.errors import OttlaError


@contextmanager
def needs_trace() -> Iterator[None]:
    """Around imports."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ottla"):
            raise
        raise OttlaError(f"this needs {error.name}: run `pip install 'ottla[trace]'`.") from None
