"""`ottla txn`: the group of verbs; `txn_show` looks, `txn_hanging` finds and aborts what nobody will end."""

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
                Lazy("list", "txn_show:list_transactions", "List transactional ids and their states."),
                Lazy("describe", "txn_show:describe", "Producer, age and partitions of transactions."),
                Lazy("find-hanging", "txn_hanging:find_hanging", "Find open transactions that nobody will end."),
            ),
        ),
        Section(
            "Change",
            (Lazy("abort", "txn_hanging:abort", "Abort an open transaction in one partition."),),
        ),
    ),
)
