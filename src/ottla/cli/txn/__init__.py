"""`ottla txn`: the group of verbs; `show` looks, `hanging` finds and aborts what nobody will end."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

txn = VerbGroup(
    "txn",
    help="Transactions: list, describe, find the hanging ones and abort them.",
    sections=(
        Section(
            "Look",
            (
                Lazy("list", "txn.show:list_transactions", "List transactional ids and their states."),
                Lazy("describe", "txn.show:describe", "Producer, age and partitions of transactions."),
                Lazy("find-hanging", "txn.hanging:find_hanging", "Find open transactions that nobody will end."),
            ),
        ),
        Section(
            "Change",
            (Lazy("abort", "txn.hanging:abort", "Abort an open transaction in one partition."),),
        ),
    ),
)
