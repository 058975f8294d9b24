"""Values of options and arguments that may not be empty, as `"$UNSET"` is: refused before a command begins.

`--data-dir ""` is not the folder that one stands in, `--users ""` not nobody, and `-b ""` not the default cluster.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _AnyPath = click.Path[Any]  # its later versions are generic, its earlier ones cannot be subscripted
else:
    _AnyPath = click.Path


class GivenName(click.types.StringParamType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value:
            self.fail("it is empty.", param, ctx)
        return super().convert(value, param, ctx)


class GivenPath(_AnyPath):
    def __init__(self, path_type: type[Path] | type[str] = Path, **more: Any) -> None:
        super().__init__(path_type=path_type, **more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("the path is empty.", param, ctx)
        return super().convert(value, param, ctx)
