"""Avro's rules and text forms are those of Java, on random pairs of schemas."""

from __future__ import annotations

import json

import pytest

from ottla.avro.compatibility import differences
from ottla.avro.parse import parse
from ottla.avro.text import canonical
from ottla.common.schemas import InvalidSchema
from tests.registry.avro_oracle import judge
from tests.registry.random_avro import SchemaMaker

pytestmark = pytest.mark.jvm


def compare(seeds: range) -> None:
    pairs = [SchemaMaker(seed).pair() for seed in seeds]
    counts: dict[str, int] = {}
    for seed, (reader, writer), verdict in zip(seeds, pairs, judge(pairs), strict=True):
        word, text = verdict
        counts[word] = counts.get(word, 0) + 1
        told = f"seed {seed}: {json.dumps(reader)} reads {json.dumps(writer)}; Java: {verdict}"
        try:
            parsed = parse(json.dumps(reader)), parse(json.dumps(writer))
        except InvalidSchema as error:
            assert word == "invalid", f"{told}, we refuse it: {error}"
            continue
        if word == "error":
            continue  # Java gives up on a field that has two counterparts
        assert word != "invalid", told
        found = differences(*parsed)
        assert (word == "compatible") == (not found), f"{told}; we: {found}"
        assert canonical(parsed[0]) == text, told
    assert min(counts["compatible"], counts["incompatible"]) > len(pairs) // 10, counts


def test_random_pairs_have_javas_verdict_and_text() -> None:
    compare(range(600))


@pytest.mark.slow
def test_many_random_pairs_have_javas_verdict_and_text() -> None:
    compare(range(10_000, 22_000))
