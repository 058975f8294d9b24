"""Random changes in several tables, what is known of them, and what of that must be in the topics.

Every change of a row gives it a new version, so that each state of a key is told from all others. A topic may begin a
key with the row that a snapshot read (op r), or with any change if there was no row then; from there on it has every
change, once and in order. A later r stands for the state it has.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from tests.connect.databases.driving import Published
from tests.support.databases import Database

TABLES = {
    "numbers": ("id INT PRIMARY KEY", lambda n: (n,)),
    "words": ("id VARCHAR(40) PRIMARY KEY", lambda n: (f"{'aZ bÄ'[n % 5]}{n}é",)),
    "pairs": ("a BIGINT, b VARCHAR(20), PRIMARY KEY (b, a)", lambda n: (f"b{n % 3}", n)),
}
KEYS = {"numbers": ("id",), "words": ("id",), "pairs": ("b", "a")}
_ODDITIES = ["", "plain", 'quoted "x"', "line\nbreak", "comma, semicolon;", "\\N", "täglich €", "'", "NULL"]
Key = tuple[Any, ...]
State = tuple[int, str | None]  # version, body
Step = tuple[str, Key, State | None]


class Writer:
    """`history`: the states of each key in the order of commits; None is a deleted row."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database = database
        self.random = random.Random(seed)
        self.history: dict[tuple[str, Key], list[State | None]] = defaultdict(list)
        self._version = 0
        self._open: Any = None
        self._pending: list[Step] = []
        self._connection: Any = None
        self._transactions = 0
        # What was sent and not answered: after a crash it may be committed all the same.
        self._sent: list[Step] = []

    def create(self) -> None:
        for table, (columns, _) in TABLES.items():
            key, _, primary = columns.partition(", PRIMARY")
            more = f", PRIMARY{primary}" if primary else ""
            self.database.sql(f"CREATE TABLE {table} ({key}, version BIGINT NOT NULL, body TEXT{more})")
        self.database.sql("CREATE TABLE commits (id INT PRIMARY KEY)")

    def _cursor(self) -> Any:
        if self._connection is None:
            self._connection = self.database.connect()
        return self._connection.cursor()

    def lost(self) -> None:
        """The server has died and is there again, without the transactions that were open. Of what was sent last it
        says itself whether it is committed."""
        sent, self._sent = self._sent, []
        if sent and (self._is_committed() if sent is self._pending else self._is_now(*sent[0])):
            for step in sent:
                self._committed(*step)
        self._connection = self._open = None
        self._pending = []

    def refused(self) -> None:
        """The server did not do what was sent last, because the open transaction is in its way: that one ends."""
        if self._open is not None:
            self._open.close()
        self._open = None
        self._sent = self._pending = []

    def _is_committed(self) -> bool:
        """By a row that each large transaction has of its own: its changes may come to nothing."""
        return bool(self.database.sql(f"SELECT id FROM commits WHERE id = {self._transactions}"))

    def _is_now(self, table: str, key: Key, state: State | None) -> bool:
        return self.rows(table).get(key) == state

    def close(self) -> None:
        for connection in (self._connection, self._open):
            if connection is not None:
                connection.close()

    # --- changes

    def change(self, count: int = 1) -> None:
        for _ in range(count):
            statement, values, step = self._planned(*self._step(0, 30))
            cursor = self._cursor()
            self._sent = [step]
            cursor.execute(statement, values)
            self._sent = []
            self._committed(*step)

    def _committed(self, table: str, key: Key, state: State | None) -> None:
        self.history[table, key].append(state)

    def _step(self, low: int, high: int) -> tuple[str, Key]:
        table = self.random.choice(list(TABLES))
        return table, TABLES[table][1](self.random.randrange(low, high))

    def _now(self, table: str, key: Key) -> State | None:
        for each_table, each_key, state in reversed(self._pending):
            if (each_table, each_key) == (table, key):
                return state
        states = self.history[table, key]
        return states[-1] if states else None

    def _planned(self, table: str, key: Key) -> tuple[str, tuple[Any, ...], Step]:
        names = KEYS[table]
        where = " AND ".join(f"{name} = %s" for name in names)
        self._version += 1
        body = self.random.choice([None, *_ODDITIES, self.random.randbytes(3000).hex()])
        now = self._now(table, key)
        if now is None:
            columns = ", ".join((*names, "version", "body"))
            marks = ", ".join(["%s"] * (len(names) + 2))
            statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
            return statement, (*key, self._version, body), (table, key, (self._version, body))
        if self.random.random() < 0.3:
            return f"DELETE FROM {table} WHERE {where}", key, (table, key, None)
        if self.random.random() < 0.3:
            # The body stays as it is: PostgreSQL does not send it again if it is large.
            statement = f"UPDATE {table} SET version = %s WHERE {where}"
            return statement, (self._version, *key), (table, key, (self._version, now[1]))
        statement = f"UPDATE {table} SET version = %s, body = %s WHERE {where}"
        return statement, (self._version, body, *key), (table, key, (self._version, body))

    def large_transaction(self, count: int) -> None:
        """Of other keys than `change` has, so that nothing waits for a lock. It may stay open for a while."""
        if self._open is None:
            self._open = self.database.connect()
            self._transactions += 1
            self._open.cursor().execute("BEGIN")
            self._open.cursor().execute(f"INSERT INTO commits VALUES ({self._transactions})")
        for _ in range(count):
            statement, values, step = self._planned(*self._step(1000, 1040))
            self._open.cursor().execute(statement, values)
            self._pending.append(step)

    def commit(self) -> None:
        if self._open is not None:
            self._sent = self._pending
            self._open.cursor().execute("COMMIT")
            self._open.close()
            self._open = None
            for step in self._pending:
                self._committed(*step)
            self._sent = self._pending = []

    # --- what must be

    def rows(self, table: str) -> dict[Key, State]:
        names = ", ".join((*KEYS[table], "version", "body"))
        width = len(KEYS[table])
        return {row[:width]: row[width:] for row in self.database.sql(f"SELECT {names} FROM {table}")}

    def check(self, published: list[Published], prefix: str) -> None:
        for table in TABLES:
            of_table = [each for each in published if each.topic == f"{prefix}.{table}"]
            told, is_there = table_of(table, of_table), self.rows(table)
            different = {key for key in {*told, *is_there} if told.get(key) != is_there.get(key)}
            assert not different, [
                (
                    table,
                    key,
                    self.history[table, key][-4:],
                    [_short(each) for each in of_table if _key(table, each.key) == key],
                )
                for key in different
            ]
            by_key: dict[Key, list[Published]] = defaultdict(list)
            for each in of_table:
                by_key[_key(table, each.key)].append(each)
            for (name, key), states in self.history.items():
                if name == table and states:
                    self._check_key(states, by_key.pop(key, []), (table, key))
            assert not by_key

    def _check_key(self, states: list[State | None], published: list[Published], where: Any) -> None:
        changes = [each.value for each in published if each.value is not None]
        assert len(changes) + sum(each["op"] == "d" for each in changes) == len(published), (
            "a tombstone for each delete"
        )
        said = (where, states[-5:], [(each["op"], (each["after"] or {}).get("version")) for each in changes][-8:])
        at: int | None = None
        for each in changes:
            after = each["after"]
            state = None if after is None else (after["version"], after["body"])
            if each["op"] == "r" or (at is None and each["op"] != "d"):
                found = states.index(state)
                assert at is None or found >= at, said
                if each["op"] == "c" and found > 0:
                    assert states[found - 1] is None, said
                assert each["op"] != "u", said
                at = found
            else:
                at = self._first_delete(states) if at is None else at + 1
                assert at < len(states) and states[at] == state, said
                assert each["op"] == ("d" if state is None else "c" if at == 0 or states[at - 1] is None else "u"), said
        assert at == len(states) - 1 if at is not None else states[-1] is None, said

    def _first_delete(self, states: list[State | None]) -> int:
        raise AssertionError(f"a delete of a row that was never told: {states}")


def _short(each: Published) -> Any:
    return each.value and (
        each.value["op"],
        (each.value["after"] or {}).get("version"),
        each.value["source"].get("txId"),
    )


def _key(table: str, key: Any) -> Key:
    return tuple(key[name] for name in KEYS[table])


def table_of(table: str, published: list[Published]) -> dict[Key, State]:
    """What a compacted topic keeps."""
    found: dict[Key, State] = {}
    for each in published:
        key = _key(table, each.key)
        after = None if each.value is None else each.value["after"]
        if after is None:
            found.pop(key, None)
        else:
            found[key] = (after["version"], after["body"])
    return found
