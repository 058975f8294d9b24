"""The page on transforms names every class and every setting."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.connect.conversion import ERROR_SETTINGS, converters, predicates, sink_side, transforms

PAGE = Path(__file__).parents[3] / "docs" / "connect-transforms.md"


def test_every_class_and_setting_is_on_the_page() -> None:
    page = PAGE.read_text()
    for kind in (*converters.ALL, *transforms.ALL, *predicates.ALL):
        name = kind.class_name.rpartition(".")[2] if isinstance(getattr(kind, "class_name", None), str) else kind.name  # type: ignore[union-attr]
        assert name in page
        for key in kind.config_def.keys:
            assert f"`{key.name}`" in page, f"{name} has {key.name}"
    for key in ERROR_SETTINGS.keys:
        assert f"`{key.name}`" in page


def test_the_example_is_a_configuration() -> None:
    [example] = re.findall(r"```properties\n(.*?)```", PAGE.read_text(), re.DOTALL)
    config = dict(line.split("=", 1) for line in example.splitlines())
    assert sink_side(config) is not None
