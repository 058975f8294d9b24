"""Metadata and rules of a schema: what was sent, or what the version before had, and what settings add to it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ottla.registry.schemas import SchemaText, frozen_json

# A property with the number of the version that has it.
_VERSION = "confluent:version"


def inherited(
    schema: SchemaText, before: SchemaText | None, config: dict[str, Any], number: int, *, names_version: bool
) -> SchemaText:
    """`number`: of the version that it is to be. It is noted where metadata has such a property already, and where the
    request named a version."""
    metadata = _tree(schema.metadata if schema.metadata is not None or before is None else before.metadata)
    rules = _tree(schema.rule_set if schema.rule_set is not None or before is None else before.rule_set)
    metadata = _merged(_merged(config.get("defaultMetadata"), metadata), config.get("overrideMetadata"))
    rules = _merged_rules(_merged_rules(config.get("defaultRuleSet"), rules), config.get("overrideRuleSet"))
    if names_version or _VERSION in ((metadata or {}).get("properties") or {}):
        metadata = _merged(metadata, {"properties": {_VERSION: str(number)}})
    return replace(schema, metadata=frozen_json(metadata), rule_set=frozen_json(rules))


def without_version(metadata: str | None, asked: str | None) -> str | None:
    """As it would be asked for by somebody who does not know the number."""
    if metadata is None or _VERSION not in metadata or (asked is not None and _VERSION in asked):
        return metadata
    tree = json.loads(metadata)
    properties = {name: value for name, value in (tree.get("properties") or {}).items() if name != _VERSION}
    tree = {name: value for name, value in tree.items() if name != "properties"}
    return frozen_json(tree | ({"properties": properties} if properties else {}) or None)


def _tree(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _merged(weak: Any, strong: Any) -> Any:
    """Tags and properties of both; where both have one the stronger counts."""
    if not weak or not strong:
        return strong or weak
    merged: dict[str, Any] = {}
    for word in ("tags", "properties"):
        if both := (weak.get(word) or {}) | (strong.get(word) or {}):
            merged[word] = both
    if sensitive := list(dict.fromkeys([*(weak.get("sensitive") or ()), *(strong.get("sensitive") or ())])):
        merged["sensitive"] = sensitive
    return merged


def _merged_rules(weak: Any, strong: Any) -> Any:
    """By their names."""
    if not weak or not strong:
        return strong or weak
    merged: dict[str, Any] = {}
    for word in ("migrationRules", "domainRules", "encodingRules"):
        named = {rule.get("name"): rule for rule in (*(weak.get(word) or ()), *(strong.get(word) or ()))}
        if named:
            merged[word] = list(named.values())
    return merged
