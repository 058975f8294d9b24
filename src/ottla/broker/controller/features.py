"""The features (KIP-584) this broker can run: what ApiVersions advertises and UpdateFeatures may change.

Only what is true here. `metadata.version` tells tools which release's answers to expect (30 is Kafka 4.3);
`group.version` 1 is the consumer protocol of KIP-848, `transaction.version` 2 the transactions of KIP-890. A feature
that is not in this table is at level 0, which is how clients learn that they must not use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# name -> (lowest, highest) level
SUPPORTED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"metadata.version": (7, 30), "group.version": (0, 1), "transaction.version": (0, 2)}
)
# What a new cluster starts with.
INITIAL_LEVELS: Mapping[str, int] = MappingProxyType(
    {"metadata.version": 30, "group.version": 1, "transaction.version": 2}
)
