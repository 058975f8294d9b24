"""Whether JSON is a JSON Schema: `jsonschema` judges it by the schema of its draft.

Two things are judged here, since a few kilobytes could keep the library busy for hours: whether the values of an `enum`
are different, and whether a `pattern` is one. Of patterns that RE2 does not know (they look ahead or back) only those
that are none in any dialect are refused: nothing is matched with them here.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from jsonschema import FormatChecker
from jsonschema.exceptions import best_match
from jsonschema.validators import Draft4Validator, Draft7Validator, validator_for

from ottla.common.linear_regex import BadPattern, compile_pattern
from ottla.common.schemas import InvalidSchema

# Longer lists of a schema are looked at here.
_LIST_MAX = 100
# Of these one is told.
_ERRORS_MAX = 100
# Values, in which words mean nothing.
_VALUES = ("const", "default", "examples")
# What RE2 says of patterns that it does not know, though others do.
_UNKNOWN_TO_RE2 = (
    "invalid perl operator",
    "invalid escape sequence",
    "invalid repetition size",
    "invalid character class range: \\p",
    "invalid character class range: \\P",
    "invalid named capture group",
    "bad repetition operator",
    "pattern too large",
)
_FORMATS = FormatChecker(formats=())


def require_valid(tree: Any) -> None:
    """Raises InvalidSchema. `tree` is not nested deeply."""
    if isinstance(tree, dict) and not isinstance(tree.get("$schema", ""), str):
        raise InvalidSchema("$schema is no address of a draft")
    try:
        draft = validator_for(tree, default=Draft7Validator)
    except ValueError:
        raise InvalidSchema("$schema is no address of a draft") from None
    outline = _outline(tree, is_different=draft is Draft4Validator)
    meta = validator_for(draft.META_SCHEMA, default=draft)(draft.META_SCHEMA, format_checker=_FORMATS)
    errors = list(islice(meta.iter_errors(outline), _ERRORS_MAX))
    if errors:
        error = best_match(errors)
        raise InvalidSchema(f"{error.message} (at {error.json_path})")


def _outline(tree: Any, *, is_different: bool) -> Any:
    """The schema without what was judged here: of long lists of values the first is left."""
    if isinstance(tree, list):
        return [_outline(each, is_different=is_different) for each in tree]
    if not isinstance(tree, dict):
        return tree
    outline = {}
    for word, its in tree.items():
        if isinstance(its, list) and len(its) > _LIST_MAX and word == "enum":
            if is_different and len({_hashable(value) for value in its}) < len(its):
                raise InvalidSchema("an enum has a value twice")
            outline[word] = its[:1]
        elif isinstance(its, list) and len(its) > _LIST_MAX and word in ("required", "type"):
            if not all(isinstance(name, str) for name in its):
                raise InvalidSchema(f"{word} has what is no text")
            outline[word] = its
        else:
            outline[word] = its if word in _VALUES else _outline(its, is_different=is_different)
    return outline


def _hashable(value: Any) -> Any:
    """Equal for values that are equal in JSON: 1 is 1.0, and not true."""
    if isinstance(value, dict):
        return frozenset((name, _hashable(its)) for name, its in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return (value,) if isinstance(value, bool) else value


def _is_pattern(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        compile_pattern(value)
    except BadPattern as error:
        return str(error).startswith(_UNKNOWN_TO_RE2)
    except UnicodeEncodeError:
        return False
    return True


_FORMATS.checks("regex")(_is_pattern)
