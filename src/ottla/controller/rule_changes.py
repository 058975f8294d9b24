"""min.insync.replicas changes: which replicas are eligible depends on it, so leaders and controller must change their
minds together. What was set is one thing (`Rules`), what is in force another (`TopicImage.min_insync`): it changes in
the node of the topic, in one step with what follows from it.

- **Lower**: a leader that commits by the new value may commit what no eligible replica has, so the ELR is emptied where
  enough are in sync now.
- **Higher**: a leader that still commits by the old value must not be left alone by an ISR that shrinks under the new
  one. So every partition epoch grows: its proposals are refused until it has seen the new value.

However the setting was changed (of the topic, the cluster's default, a broker's, a file), `reconcile` finds the
difference. Brokers whose own settings differ make it change with the controller, which is a nuisance and no danger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ottla.controller.rules import Rules
from ottla.controller.settling import settle
from ottla.controller.standing import Standing, standing
from ottla.metadata.image import ClusterImage, TopicImage


def min_insync_changed(image: ClusterImage, topics: Iterable[TopicImage], rules: Rules) -> dict[str, TopicImage]:
    """Those of the topics for which another value is to be in force now, with all that follows."""
    return bring_into_force(topics, standing(image), rules)


def bring_into_force(topics: Iterable[TopicImage], brokers: Standing, rules: Rules) -> dict[str, TopicImage]:
    changed = {}
    for topic in topics:
        min_insync = rules.min_insync_replicas(topic)
        if min_insync == topic.min_insync:
            continue
        unclean, partitions = rules.unclean_election(topic), []
        for index, before in enumerate(topic.partitions):
            missing = brokers.missing_from(topic.id, index)
            after = settle(before, brokers, min_insync=min_insync, unclean=unclean, missing=missing)
            partitions.append(replace(after, partition_epoch=before.partition_epoch + 1))
        changed[topic.name] = replace(topic, partitions=tuple(partitions), min_insync=min_insync)
    return changed
