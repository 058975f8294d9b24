"""The settings of topics that the controller's decisions depend on.

They are asked for of every topic when a broker comes or goes, so what has been worked out is kept until the settings of
the broker change. An override that is not valid any more is left out, and only that one, as the leader of the partition
does it.
"""

from __future__ import annotations

from ottla.common.config import BrokerConfig, TopicConfig
from ottla.common.errors import OttlaError
from ottla.controller.rules import Rules
from ottla.metadata.image import TopicImage

_NAMES = ("min.insync.replicas", "unclean.leader.election.enable")


def controller_rules(config: BrokerConfig) -> Rules:
    known: dict[frozenset[tuple[str, str]], TopicConfig] = {}
    config.on_change(lambda _: known.clear())

    def effective(topic: TopicImage) -> TopicConfig:
        overrides = frozenset((name, topic.configs[name]) for name in _NAMES if name in topic.configs)
        found = known.get(overrides)
        if found is None:
            valid = {name: text for name, text in overrides if _is_valid(config, name, text)}
            found = known[overrides] = TopicConfig(config, valid)
        return found

    return Rules(
        min_insync_replicas=lambda topic: effective(topic).min_insync_replicas,
        unclean_election=lambda topic: effective(topic).unclean_leader_election_enable,
    )


def _is_valid(config: BrokerConfig, name: str, text: str) -> bool:
    try:
        TopicConfig(config, {name: text})
    except OttlaError:
        return False
    return True
