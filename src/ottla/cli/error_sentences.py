"""librdkafka's and the broker's errors as one sentence that says what to do next."""

from __future__ import annotations

import re
import sys
from typing import Any

from ottla.common.errors import OttlaError

LIBRDKAFKA_SETTINGS = "https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md"

# What a code means for someone at a prompt; `{detail}` is what the broker or librdkafka said.
SENTENCES = {
    "UNKNOWN_TOPIC_OR_PART": "there is no such topic or partition: `ottla topic list` shows what there is.",
    "_UNKNOWN_TOPIC": "there is no such topic: `ottla topic list` shows what there is.",
    "_UNKNOWN_PARTITION": "there is no such partition: `ottla topic describe` shows what there is.",
    "TOPIC_AUTHORIZATION_FAILED": "you may not do this to the topic: ask for the right, or use another --profile.",
    "GROUP_AUTHORIZATION_FAILED": "you may not use this group: ask for the right, or use another --profile.",
    "CLUSTER_AUTHORIZATION_FAILED": "you may not do this to the cluster: ask for the right, or use another --profile.",
    "_AUTHENTICATION": "the broker did not accept who you are ({detail}): check the sasl.* and ssl.* settings.",
    "SASL_AUTHENTICATION_FAILED": "the broker did not accept who you are ({detail}): check sasl.username and password.",
    "_SSL": "TLS failed ({detail}): check security.protocol and the ssl.* settings.",
    "GROUP_ID_NOT_FOUND": "there is no such group: `ottla group list` shows what there is.",
    "NON_EMPTY_GROUP": "the group has active members: stop its consumers first.",
    "UNKNOWN_MEMBER_ID": "the group has active members: stop its consumers first.",
    "GROUP_SUBSCRIBED_TO_TOPIC": "the group is reading that topic: stop its consumers first.",
    "MSG_SIZE_TOO_LARGE": "a record is larger than the topic's max.message.bytes or -X message.max.bytes allow.",
    "OFFSET_OUT_OF_RANGE": "that offset is not in the log any more, or not yet: see `ottla topic offsets`.",
    "_TIMED_OUT": "the cluster did not answer in time ({detail}): see `ottla cluster health`.",
    "_MSG_TIMED_OUT": "the cluster did not take the record in time: see `ottla cluster health`.",
    "REQUEST_TIMED_OUT": "the broker could not finish in time: see `ottla cluster health`.",
    "NOT_CONTROLLER": "nobody can change the cluster now ({detail}): see `ottla cluster health`.",
    "NOT_ENOUGH_REPLICAS": "too few replicas are in sync (min.insync.replicas): see `ottla cluster health`.",
    "KAFKA_STORAGE_ERROR": "the broker's disk fails or is full: see `ottla cluster health` and the broker's log.",
    "_UNSUPPORTED_FEATURE": "this cluster is too old for that ({detail}).",
    "UNSUPPORTED_VERSION": "this cluster is too old for that ({detail}).",
    "POLICY_VIOLATION": "the cluster's policy refuses this: {detail}.",
}


def explain(error: Exception) -> OttlaError | None:
    """The sentence for an exception that librdkafka raised; None for one that is not its own."""
    confluent = sys.modules.get("confluent_kafka")
    if confluent is None or not isinstance(error, confluent.KafkaException):
        return None
    return OttlaError(sentence(error.args[0]))


def sentence(error: Any, subject: str = "") -> str:
    """A KafkaError in words, after `subject: ` where one is given."""
    detail = detail_of(error)
    template = SENTENCES.get(error.name())
    words = template.format(detail=detail) if template else f"{detail} ({error.name().lstrip('_')})."
    return f"{subject}: {words}" if subject else words


def failed(error: Exception, subject: str = "") -> OttlaError:
    """For `raise failed(error, "topic 'x'") from None` around a KafkaException."""
    return OttlaError(sentence(error.args[0], subject))


def detail_of(error: Any) -> str:
    """What was said, without librdkafka's decoration and without a full stop."""
    text = str(error.str() or error.name()).strip()
    text = re.sub(r"^(Broker|Local): ", "", text)
    text = re.sub(r"^\S+/(?:bootstrap|\d+): ", "", text)
    text = re.sub(r" \(after \d+ms in state \w+[^)]*\)", "", text)
    return text.rstrip(".")


def bad_client_setting(error: Exception) -> OttlaError:
    """librdkafka refused its configuration: name the setting."""
    text = str(error.args[0].str()) if hasattr(error.args[0], "str") else str(error)
    if match := re.search(r'No such configuration property: "([^"]+)"', text):
        return OttlaError(f"librdkafka has no setting '{match[1]}' (-X or profile): see {LIBRDKAFKA_SETTINGS}.")
    return OttlaError(f"librdkafka refused its settings: {text.rstrip('.')}; check -X and the profile.")
