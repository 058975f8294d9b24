"""Kinds of timers, the first part of a key."""

from __future__ import annotations

CLASSIC_SESSION = "classic-session"
CLASSIC_JOIN = "classic-join"
CLASSIC_SYNC = "classic-sync"
MEMBER_SESSION = "member-session"
MEMBER_REBALANCE = "member-rebalance"
MEMBER_JOIN = "member-join"
MEMBER_SYNC = "member-sync"
FORGET_TOPIC = "forget-topic"  # with the topic in the place of the group
