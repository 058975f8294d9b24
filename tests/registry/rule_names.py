"""The names of rules that the sources of a format can give: a table of them is complete, or a test fails."""

from __future__ import annotations

import re
from pathlib import Path

import ottla.registry

_NAME = re.compile(r'"([A-Z]+(?:_[A-Z]+)+)"')
# Parts of names that are put together: a limit and what became of it, a content model and what became of it.
_LIMITS = re.compile(r'"((?:EXCLUSIVE_)?(?:MAX|MIN)(?:IMUM|_LENGTH|_ITEMS|_PROPERTIES|_CONTAINS))"')
_MODELS = ("ADDITIONAL_PROPERTIES", "ADDITIONAL_ITEMS", "UNEVALUATED_PROPERTIES", "UNEVALUATED_ITEMS")


def names_in(package: str) -> set[str]:
    folder = Path(ottla.registry.__file__).parent / package
    text = "\n".join(path.read_text() for path in sorted(folder.glob("*.py")))
    limits = set(_LIMITS.findall(text))
    found = set(_NAME.findall(text)) - limits - set(_MODELS)
    for limit in limits:
        found |= {f"{limit}_ADDED", f"{limit}_{'DECREASED' if 'MAX' in limit else 'INCREASED'}"}
    found |= {f"{model}_{end}" for model in _MODELS if model in text for end in ("REMOVED", "NARROWED")}
    return {name for name in found if not name.startswith(("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP", "LABEL_"))}
