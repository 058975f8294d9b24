"""Event sourcing with a read model: accounts are what their events made of them.

    python examples/streams/event_sourcing.py
    ottla streams run examples/streams/event_sourcing.py --create-topics

Commands are checked against the account as it is; what is accepted becomes an event, the rest is answered with a
refusal. The read model `account-balances` has the balance of every open account, and loses those that are closed.
"""

from __future__ import annotations

from typing import Any

from showing import Row, show

from ottla.streams import Application, Processor, ProcessorContext, Record, StreamsBuilder, key_value_store, serdes

Event = dict[str, Any]


def applied(balance: int | None, event: Event) -> int | None:
    """The account after an event; None: there is none."""
    kind = event["event"]
    if kind == "opened":
        return 0
    if kind == "closed":
        return None
    assert balance is not None
    return balance + event["amount"] * (1 if kind == "deposited" else -1)


def decided(balance: int | None, command: Event) -> tuple[Event | None, str]:
    """The event that a command leads to, or why not."""
    wanted, amount = command["command"], command.get("amount", 0)
    if wanted == "open":
        return (None, "it is open already") if balance is not None else ({"event": "opened"}, "")
    if balance is None:
        return None, "there is no such account"
    if wanted == "deposit":
        return {"event": "deposited", "amount": amount}, ""
    if wanted == "withdraw":
        return ({"event": "withdrawn", "amount": amount}, "") if amount <= balance else (None, "there is too little")
    return ({"event": "closed"}, "") if balance == 0 else (None, "it is not empty")


class Accounts(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._balances = context.store("accounts")

    def process(self, record: Record) -> None:
        balance = self._balances.get(record.key)
        event, why_not = decided(balance, record.value)
        if event is None:
            self.context.forward(record.with_value({**record.value, "refused": why_not}))
            return
        self._balances.put(record.key, applied(balance, event))
        self.context.forward(record.with_value(event))


builder = StreamsBuilder(key=serdes.string)
builder.add_store(key_value_store("accounts", key=serdes.string))
decisions = builder.stream("account-commands").process_values(Accounts, stores=["accounts"], name="accounts")
branches = decisions.split(name="by").branch(lambda key, value: "refused" in value, "refused").default_branch("event")
branches["refused"].to("account-refusals")
branches["event"].to("account-events")


def balance_after(account: str, event: Event, balance: list[int]) -> list[int] | None:
    now = applied(balance[0] if balance else None, event)
    return None if now is None else [now]


balances = branches["event"].group_by_key().aggregate(list, balance_after, store="balances")
balances.map_values(lambda balance: balance[0]).to_stream().to("account-balances")

app = Application("accounts", builder)

ROWS: list[Row] = [
    ("account-commands", "ada", {"command": "open"}, 0),
    ("account-commands", "ada", {"command": "deposit", "amount": 50}, 1),
    ("account-commands", "ada", {"command": "withdraw", "amount": 80}, 2),
    ("account-commands", "ada", {"command": "withdraw", "amount": 50}, 3),
    ("account-commands", "bob", {"command": "deposit", "amount": 1}, 4),
    ("account-commands", "ada", {"command": "close"}, 5),
]

if __name__ == "__main__":
    show(app, ROWS, "account-events", "account-refusals", "account-balances")
