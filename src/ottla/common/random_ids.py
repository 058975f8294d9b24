"""Ids that chance makes: apart from the others, which pure code may use."""

from __future__ import annotations

import os

from ottla.common.ids import TopicId, topic_id_text


def random_topic_id() -> TopicId:
    """As Kafka: never one of the reserved ids, never text that starts with a dash."""
    while True:
        raw = os.urandom(16)
        if int.from_bytes(raw, "big") > 1 and not topic_id_text(TopicId(raw)).startswith("-"):
            return TopicId(raw)
