"""An application from its file. Needs no Spark."""

from __future__ import annotations

from pathlib import Path

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.loading import execute_file, line_of
from ottla.streams.program import Application, application_in


def load_application(path: Path) -> Application:
    """Raises OttlaError that says what is wrong with the file, and in which line."""
    if not path.is_file():
        raise OttlaError(f"there is no file {path}.")
    if path.suffix != ".py":
        raise OttlaError(f"{path} is not an application: it must end in .py.")
    try:
        return application_in(path, execute_file(path))
    except OttlaError as error:
        line = line_of(error, path)
        if not line or str(path) in str(error):
            raise
        raise OttlaError(f"{path}{line}: {error}") from None
