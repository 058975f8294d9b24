"""Metadata and rules of a schema: what was sent, or what the version before had, and what settings add to it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ottla.registry.schemas import SchemaText, frozen_json


def inherited(schema: SchemaText, before: SchemaText | None, config: dict[str, Any]) -> SchemaText:
    metadata = _tree(schema.metadata if schema.metadata is not None or before is None else before.metadata)
    rules = _tree(schema.rule_set if schema.rule_set is not None or before is None else before.rule_set)
    metadata = _merged(_merged(config.get("defaultMetadata"), metadata), config.get("overrideMetadata"))
    rules = _merged_rules(_merged_rules(config.get("defaultRuleSet"), rules), config.get("overrideRuleSet"))
    return replace(schema, metadata=frozen_json(metadata), rule_set=frozen_json(rules))


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
