"""What metadata, rules and settings have to look like: what is stored is trusted when it is read again."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ottla.registry.changes import CONFIG_FIELDS
from ottla.registry.errors import RegistryError
from ottla.registry.names import valid_subject

_RULES = ("migrationRules", "domainRules", "encodingRules")


def metadata_of(tree: Any, name: str = "metadata") -> Any:
    """Tags and properties. Raises what the API answers."""
    if tree is None:
        return None
    _require(isinstance(tree, dict), f"{name} has to be an object")
    properties, tags, sensitive = (tree.get(word) for word in ("properties", "tags", "sensitive"))
    is_texts = isinstance(properties, dict) and all(isinstance(one, str) for one in properties.values())
    _require(properties is None or is_texts, f"the properties of {name} have to be texts")
    is_lists = isinstance(tags, dict) and all(map(_is_texts, tags.values()))
    _require(tags is None or is_lists, f"the tags of {name} have to be lists of texts")
    _require(sensitive is None or _is_texts(sensitive), f"what is sensitive in {name} has to be a list of texts")
    return tree


def rules_of(tree: Any, name: str = "ruleSet") -> Any:
    if tree is None:
        return None
    _require(isinstance(tree, dict), f"{name} has to be an object")
    for word in _RULES:
        listed = tree.get(word)
        is_list = listed is None or (isinstance(listed, list) and all(isinstance(one, dict) for one in listed))
        _require(is_list, f"{word} of {name} has to be a list of objects")
    return tree


def config_of(tree: dict[str, Any]) -> dict[str, Any]:
    _require_known(tree, ("compatibility", *CONFIG_FIELDS))
    for name in ("defaultMetadata", "overrideMetadata"):
        metadata_of(tree.get(name), name)
    for name in ("defaultRuleSet", "overrideRuleSet"):
        rules_of(tree.get(name), name)
    for name in ("alias", "compatibilityGroup"):
        _require(tree.get(name) is None or isinstance(tree[name], str), f"{name} has to be text")
    if tree.get("alias"):
        valid_subject(tree["alias"])
    for name in ("normalize", "validateFields"):
        _require(tree.get(name) is None or isinstance(tree[name], bool), f"{name} is true or false")
    return tree


def mode_of(tree: dict[str, Any]) -> dict[str, Any]:
    _require_known(tree, ("mode",))
    return tree


def _require_known(tree: dict[str, Any], names: Collection[str]) -> None:
    """Somebody who misspells a level would believe in it."""
    for name in tree:
        _require(name in names, f"Unrecognized field: {name}")


def _is_texts(listed: Any) -> bool:
    return isinstance(listed, list) and all(isinstance(one, str) for one in listed)


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise RegistryError(422, sentence)
