"""What the controller goes by is what the leader goes by."""

from __future__ import annotations

from ottla.broker.configs.config_service import ConfigService
from ottla.broker.controller.controller_rules import controller_rules
from ottla.common.config import BrokerConfig
from ottla.common.ids import ZERO_TOPIC_ID
from ottla.metadata.image import TopicImage


def topic(**configs: str) -> TopicImage:
    return TopicImage("orders", ZERO_TOPIC_ID, (), {name.replace("_", "."): text for name, text in configs.items()})


def test_a_topic_has_its_own_value_or_that_of_the_broker_as_it_is_now() -> None:
    config = BrokerConfig({"min.insync.replicas": "2"})
    rules = controller_rules(config)
    assert rules.min_insync_replicas(topic()) == 2
    assert rules.min_insync_replicas(topic(min_insync_replicas="3")) == 3
    assert not rules.unclean_election(topic())
    assert rules.unclean_election(topic(unclean_leader_election_enable="true"))
    config.reconfigure({"min.insync.replicas": "1"}, {})
    assert rules.min_insync_replicas(topic()) == 1


def test_a_setting_that_is_not_valid_any_more_takes_no_other_with_it() -> None:
    config = BrokerConfig({})
    for damaged in ("retention_ms", "unclean_leader_election_enable"):
        stored = topic(min_insync_replicas="2", **{damaged: "nonsense"})
        assert controller_rules(config).min_insync_replicas(stored) == 2
        assert ConfigService(config).log_config(stored.configs).min_insync_replicas == 2
    assert controller_rules(config).min_insync_replicas(topic(min_insync_replicas="many")) == 1
