"""What changes when a broker comes, goes or is about to go.

All of it is `reconcile` on an image that says so: what is not as it should be, given which brokers are present and what
is known of their registrations. Each function therefore also does what somebody left undone, and none needs to be told
what happened. What they return belongs into one write to the store, because an election is safe only together with the
fence of the broker that led before:

- **Gone**: its registration is not active any more, so nothing is taken from it; it is in no ISR and leads nothing.
- **Taken in**: a registration that is present and not active becomes active. The broker leaves every ISR that it is in
  by its last registration, as if it had been gone for a while, and is then a candidate again: eligible where it is in
  the ELR, and not even there if its records may be lost. Where it has no records at all any more, because the
  directory that held them is gone, it is not the last known leader either. Where its logs know later leader epochs
  than we do, ours are raised (`epochs_ahead.py`). That is dealt with now, so the marks go.
- **min.insync.replicas**: what was set is brought into force (`rule_changes.py`).
- **Controlled shutdown**: it is stopping. Where others are in sync one of them leads, and it leaves the ISR; where it
  is the last one in sync it goes on until it is gone.

If the write must be split: registrations that are fenced go with the first part; those that are taken in with the
last, and no topic that such a broker leads before it. What is missing then is what the next `reconcile` finds.

The write should be conditional on the node of each registration (its version), and on `/brokers/ID` being there where a
broker is taken in: a fenced one whose node is gone already must not come back to life by an image that is behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ottla.controller.epochs_ahead import with_raised_epochs
from ottla.controller.rule_changes import bring_into_force
from ottla.controller.rules import Rules
from ottla.controller.settling import settle_topics
from ottla.controller.standing import standing
from ottla.metadata.image import ClusterImage, Registration, TopicImage


class Changes(NamedTuple):
    """What to write, in one go: only what is different."""

    topics: dict[str, TopicImage]
    registrations: dict[int, Registration]


def next_registration(last: Registration | None, new: Registration) -> Registration:
    """What a broker writes when it registers: `new`, which says what it knows of itself, with its epoch. A loss that no
    controller has dealt with yet is not forgotten by another restart. What is missing is named each time: it may be
    back."""
    is_open = last is not None and last.may_have_lost_records and not last.is_active
    return replace(
        new,
        epoch=1 if last is None else last.epoch + 1,
        is_active=False,
        may_have_lost_records=new.may_have_lost_records or is_open,
    )


def reconcile(image: ClusterImage, rules: Rules) -> Changes:
    registrations = {}
    for broker, known in image.registrations.items():
        if known.is_active and broker not in image.brokers:
            # What it may have lost was dealt with when it was taken in.
            registrations[broker] = _as(known, is_active=False)
        elif not known.is_active and broker in image.present and image.present[broker].epoch == known.epoch:
            registrations[broker] = _as(known, is_active=True)
    return _settled(image, registrations, rules)


def _as(known: Registration, *, is_active: bool) -> Registration:
    return replace(known, is_active=is_active, may_have_lost_records=False, is_stopping=False, missing={}, ahead={})


def broker_gone(image: ClusterImage, broker: int, rules: Rules) -> Changes:
    """Fence it: whether it is really gone does not matter for safety."""
    brokers = {other: known for other, known in image.brokers.items() if other != broker}
    present = {other: known for other, known in image.present.items() if other != broker}
    return reconcile(replace(image, brokers=brokers, present=present), rules)


def controlled_shutdown(image: ClusterImage, broker: int, rules: Rules) -> Changes:
    registration = image.registrations[broker]
    if broker not in image.brokers or registration.is_stopping:
        return reconcile(image, rules)
    stopping = {broker: replace(registration, is_stopping=True)}
    registrations = {**image.registrations, **stopping}
    rest = reconcile(replace(image, registrations=registrations), rules)
    return Changes(rest.topics, {**stopping, **rest.registrations})


def _settled(image: ClusterImage, registrations: dict[int, Registration], rules: Rules) -> Changes:
    brokers = standing(image, registrations)
    changed = bring_into_force(image.topics.values(), brokers, rules)
    rest = (topic for name, topic in image.topics.items() if name not in changed)
    topics = {**changed, **settle_topics(rest, brokers, rules)}
    taken_in = [broker for broker, registration in registrations.items() if registration.is_active]
    return Changes(with_raised_epochs(image, topics, taken_in), registrations)
