"""Rows change without a pause while a worker captures the changes and another connector writes them into tables again;
and the worker, its driver, its JVM, its Python workers, the broker and the database are killed at random moments.

Afterwards the topics have every change of a key once and in order, as tables they equal the database's, and so do the
tables that the sink has written.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg2
import pymysql
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.connect.conversation import ask
from tests.connect.databases.driving import Published
from tests.connect.databases.model import KEYS, TABLES, Writer, table_of
from tests.connect.ordeal import WORKER
from tests.support.brokers import OttlaProcess
from tests.support.connect_processes import OttlaConnect
from tests.support.databases import PASSWORD, Mariadb, Postgres

JSON = "org.apache.kafka.connect.json.JsonConverter"
PREFIX = "shop"
PATIENCE_S = 300.0
# MariaDB: a lock that is waited for too long, a deadlock. It locks gaps between keys, so transactions may meet.
_LOCKED = (1205, 1213)
VICTIMS = ("worker", "driver", "JVM", "Python worker", "broker", "database")


class Changing:
    """A thread that changes rows at random, and waits while the database is gone."""

    def __init__(self, writer: Writer, chance: random.Random) -> None:
        self._writer = writer
        self._chance = chance
        self._is_over = threading.Event()
        self.is_down = threading.Event()
        self._is_up = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                try:
                    self._step()
                except (psycopg2.Error, pymysql.Error) as error:
                    if error.args[0] in _LOCKED:
                        self._writer.refused()
                        continue
                    # Nothing but a kill makes another statement fail.
                    assert self.is_down.wait(60), f"the database is there and refuses a change: {error}"
                    assert self._is_up.wait(PATIENCE_S)
                    self._writer.lost()
                    self._is_up.clear()
                    self.is_down.clear()
                self._is_over.wait(self._chance.choice((0.0, 0.05, 0.2)))
        except BaseException as error:  # raised by whoever ends the thread
            self._failure = error

    def _step(self) -> None:
        self._writer.change(self._chance.randrange(1, 6))
        if self._chance.random() < 0.15:
            self._writer.large_transaction(self._chance.randrange(1, 60))
        if self._chance.random() < 0.15:
            self._writer.commit()

    def without_the_database(self, kill: Callable[[], None], start: Callable[[], None]) -> None:
        self.is_down.set()
        kill()
        time.sleep(self._chance.uniform(0.0, 1.0))
        start()
        self._is_up.set()
        while self.is_down.is_set() and self._failure is None:
            time.sleep(0.01)

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(60)
        self.check()
        self._writer.commit()


class Worker(OttlaConnect):
    def kill_python_workers(self) -> int:
        """Those that run tasks: children of pyspark's daemon. How many there were."""
        assert self._process is not None
        found = 0
        for folder in Path("/proc").iterdir():
            with suppress(ProcessLookupError, FileNotFoundError, PermissionError):
                if folder.name.isdigit() and os.getsid(int(folder.name)) == self._process.pid:
                    parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                    command = (folder / "cmdline").read_bytes()
                    if b"pyspark.worker" in command and Path(f"/proc/{parent}/cmdline").read_bytes() == command:
                        os.kill(int(folder.name), signal.SIGKILL)
                        found += 1
        return found


class Ordeal:
    def __init__(self, server: Postgres | Mariadb, broker: OttlaProcess, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.server, self.broker = server, broker
        self.source, self.target = server.database(), server.database()
        self.writer = Writer(self.source, seed)
        self.worker = Worker(broker.bootstrap, folder, WORKER)
        self.is_postgres = isinstance(server, Postgres)
        self.begin = f"{PREFIX}.{'public' if self.is_postgres else self.source.name}"
        self.kills: Counter[str] = Counter()
        self.changing: Changing | None = None

    def _prepare(self) -> None:
        self.writer.create()
        if self.is_postgres:
            self.source.sql(*(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in TABLES))
        self.writer.change(100)
        self.worker.start()
        for name, config in (("capture", self._capture()), ("copy", self._copy())):
            status, answer, *_ = ask(self.worker.url, "PUT", f"/connectors/{name}/config", config)
            assert status == 201, answer

    def _capture(self) -> dict[str, str]:
        own = (
            {"database.dbname": self.source.name, "slot.name": self.source.name}
            if self.is_postgres
            else {"database.include.list": self.source.name}
        )
        return {
            "connector.class": "PostgresSource" if self.is_postgres else "MysqlSource",
            **self.source.settings,
            **own,
            "topic.prefix": PREFIX,
            "table.include.list": rf".*\.({'|'.join(TABLES)})",
            "snapshot.fetch.size": "40",
            "max.batch.size": "50",
            "poll.interval.ms": "50",
            "topic.creation.default.partitions": "2",
            "topic.creation.default.replication.factor": "1",
            "key.converter": JSON,
            "value.converter": JSON,
        }

    def _copy(self) -> dict[str, str]:
        return {
            "connector.class": "JdbcSink",
            "tasks.max": "2",
            "topics": ",".join(f"{self.begin}.{table}" for table in TABLES),
            "connection.url": self.target.url,
            "connection.user": self.server.login,
            "connection.password": PASSWORD,
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "auto.create": "true",
            "batch.size": "1000",
            "transforms": "name",
            "transforms.name.type": "RegexRouter",
            "transforms.name.regex": r".*\.(\w+)",
            "transforms.name.replacement": "$1",
            "key.converter": JSON,
            "value.converter": JSON,
        }

    def play(self, kills: int) -> Counter[str]:
        try:
            self._prepare()
            self.changing = Changing(self.writer, random.Random(self.chance.random()))
            # Each of them as often as any other.
            victims = [VICTIMS[n % len(VICTIMS)] for n in range(kills)]
            self.chance.shuffle(victims)
            for victim in victims:
                if self.chance.random() < 0.6:
                    self._wait_for_progress()
                time.sleep(self.chance.uniform(0.0, 2.0))
                self._kill(victim, self.changing)
            self.changing.end()
            self.changing = None
            self._wait_for_all()
            return self.kills
        finally:
            self.worker.close()
            if self.changing is not None:
                self.changing.end()
            self.writer.close()

    def _kill(self, victim: str, changing: Changing) -> None:
        if victim == "worker":
            self.worker.kill(whole=True)
            self.worker.start()
        elif victim == "driver":
            self.worker.kill(whole=False)
            self.worker.start()
        elif victim == "JVM":
            self.worker.kill_spark()
        elif victim == "Python worker":
            self._wait(lambda: self.worker.kill_python_workers() > 0)
        elif victim == "broker":
            self.broker.kill()
            time.sleep(self.chance.uniform(0.0, 2.0))
            self.broker.start()
        else:
            changing.without_the_database(self.server.kill, self.server.start)
        self.kills[victim] += 1

    def _copied(self) -> int:
        """How many records the sink has written."""
        with suppress(psycopg2.Error, pymysql.Error):
            return int(self.target.sql("SELECT COALESCE(SUM(next_offset), 0) FROM ottla_connect_positions")[0][0])
        return 0

    def _wait_for_progress(self) -> None:
        before = self._copied()
        self._wait(lambda: self._copied() > before)

    def _wait(self, look: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not look():
            if self.changing is not None:
                self.changing.check()
            if time.monotonic() > deadline_s:
                names = ("capture", "copy")
                states = [ask(self.worker.url, "GET", f"/connectors/{name}/status") for name in names]
                raise AssertionError(f"nothing more happens after {self.kills}: {states}")
            time.sleep(0.1)

    def _wait_for_all(self) -> None:
        there = {table: self.writer.rows(table) for table in TABLES}
        self._wait(lambda: {table: self._written(table) for table in TABLES} == there)
        # What came twice would have come by now, or comes with the rounds of these seconds.
        time.sleep(2.0)
        published = self._published()
        self.writer.check(published, self.begin)
        for table in TABLES:
            of_table = [each for each in published if each.topic == f"{self.begin}.{table}"]
            assert self._written(table) == table_of(table, of_table)

    def _written(self, table: str) -> dict[Any, Any]:
        width = len(KEYS[table])
        names = ", ".join((*KEYS[table], "version", "body"))
        try:
            return {row[:width]: row[width:] for row in self.target.sql(f"SELECT {names} FROM {table}")}
        except (psycopg2.Error, pymysql.Error):
            return {}

    def _published(self) -> list[Published]:
        """Everything that is committed, partition by partition: the order that counts is that of a key."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": "checks",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        try:
            found = []
            known = consumer.list_topics(timeout=30).topics
            for topic in (f"{self.begin}.{table}" for table in TABLES):
                for partition in known[topic].partitions:
                    consumer.assign([TopicPartition(topic, partition, 0)])
                    while True:
                        message = consumer.poll(30)
                        assert message is not None, f"{topic}-{partition} does not answer"
                        if message.error() is not None:
                            if message.error().code() == KafkaError._PARTITION_EOF:
                                break
                            raise KafkaException(message.error())
                        found.append(Published(topic, _payload(message.key()), _payload(message.value())))
            return found
        finally:
            consumer.close()


def _payload(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)["payload"]


def endure(server: Postgres | Mariadb, folder: Path, kills: int, seed: int) -> Counter[str]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with OttlaProcess(folder / "broker", settings) as broker:
        return Ordeal(server, broker, folder, seed).play(kills)
