"""docs/pipeline-reference.md names every argument with its default: no more and no less than the signatures have."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from ottla.spark import write_stream
from ottla.spark.pipeline import Topics, pipeline
from tests.support.kafka_jars import REPO_ROOT

REFERENCE = (REPO_ROOT / "docs" / "pipeline-reference.md").read_text()
REQUIRED = inspect.Parameter.empty


def documented(heading: str) -> dict[str, str]:
    """Argument to default, from the first table of a section."""
    section = REFERENCE.partition(f"## `{heading}")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \|(?: (.*?))? \| ", section.partition("\n\nThe function")[0], re.MULTILINE))


@pytest.mark.parametrize(
    ("heading", "function"), [("@pipeline(...)`", pipeline), ("write_stream(frame, ...)`", write_stream)]
)
def test_every_argument_is_there_with_its_default(heading: str, function: Callable[..., Any]) -> None:
    described = documented(heading)
    arguments = inspect.signature(function).parameters
    assert list(described) == list(arguments)
    for name, argument in arguments.items():
        if argument.default is REQUIRED:
            assert described[name] == "required"
        elif argument.default is not None:
            shown = repr(argument.default).replace("'", '"')
            assert described[name] == f"`{shown}`", name
        else:
            # None stands for nothing, or for what the words say.
            assert not re.fullmatch(r"required|`[^`A-Z]*`", described[name]), name


def test_what_the_function_gets_is_there_as_it_is_called() -> None:
    for method in (Topics.stream, Topics.table):
        parameters = list(inspect.signature(method).parameters.values())[1:]
        plain = [one.replace(annotation=REQUIRED) for one in parameters]
        written = str(inspect.Signature(plain))
        assert f"`topics.{method.__name__}{written}`" in REFERENCE
