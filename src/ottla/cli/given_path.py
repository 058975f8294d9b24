"""A path as the value of an option or an argument. One that is empty is refused, before a command begins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class GivenPath(click.Path):
    """As click's, but `--data-dir "$UNSET"` is not the folder that one stands in, nor `--users "$UNSET"` no users."""

    def __init__(self, path_type: type[Path] | type[str] = Path, **more: Any) -> None:
        super().__init__(path_type=path_type, **more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("the path is empty.", param, ctx)
        return super().convert(value, param, ctx)
