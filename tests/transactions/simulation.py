"""A whole transaction system in one thread from one seed: clients, coordinator, its log, data partitions, crashes.

    python -m tests.transactions.simulation SEED        # replay one schedule, printing each event

A crash may come before or after any single append. What is lost then is exactly the memory: the coordinator is built
again from its records and finishes what was decided. A marker may also fail to be written; then clients meet a
transaction that is decided and not complete until it is tried again.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field, replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.transactions.coordinator import Decision, Markers, ProducerIdentity, TransactionCoordinator
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import EPOCH_MAX, NO_EPOCH, decode_key, decode_value, encode_key, encode_value

PARTITIONS = [TopicPartition("t", n) for n in range(3)]
IDS = ["alpha", "beta"]


class Crash(Exception):
    """The broker dies here."""


@dataclass
class Client:
    """One instance of a producer; several may hold the same transactional id."""

    name: int
    transactional_id: str
    version: int
    identity: ProducerIdentity | None = None
    token: int | None = None  # the open transaction
    touched: set[TopicPartition] = field(default_factory=set)
    ending: bool | None = None  # an EndTxn whose answer was lost, to be repeated
    fenced: bool = False


@dataclass(frozen=True)
class Entry:
    """One batch of a data partition."""

    producer_id: int
    epoch: int
    token: int | None = None  # data of this transaction
    commit: bool | None = None  # a marker


class System:
    # A test of the simulation itself puts a broken one here.
    make_coordinator = TransactionCoordinator

    def __init__(self, seed: int, *, epoch_start: int = 0, trace: bool = False) -> None:
        self.rng = random.Random(seed)
        self.version = (2, 2, 1)[seed // 7 % 3]
        self.trace = trace
        self.now_ms = 1_000
        self.records: list[tuple[bytes, bytes | None]] = []
        self.logs: dict[TopicPartition, list[Entry]] = {one: [] for one in PARTITIONS}
        self.coordinator = self._coordinator()
        # A reader of the coordinator's log that never crashes; it has replayed this many records.
        self.mirror, self.mirrored = self._coordinator(), 0
        self.clients: list[Client] = []
        self.next_producer_id = 1000
        self.next_token = 0
        self.next_name = 0
        self.crash_chance = 0.0
        self.disk_full_chance = 0.0
        self.written: dict[str, set[TopicPartition]] = {}  # markers of an unfinished transaction that are there
        self.decided: dict[int, bool] = {}  # token -> outcome, fixed by the PREPARE record
        self.owner: dict[tuple[int, int], int] = {}  # identity -> token that was last written under it
        self.promised: dict[int, bool] = {}  # token -> what a client was told
        self.identities: dict[str, list[tuple[int, int]]] = {one: [] for one in IDS}
        self.epoch_start = epoch_start

    def _coordinator(self) -> TransactionCoordinator:
        return self.make_coordinator(timeout_ms_max=60_000, id_expiration_ms=600_000, version=self.version)

    def log(self, *what: object) -> None:
        if self.trace:
            print(*what)

    # --- the broker

    def new_producer_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id

    def maybe_crash(self, where: str) -> None:
        if self.rng.random() < self.crash_chance:
            self.log("    CRASH", where)
            raise Crash(where)

    def perform(self, decision: Decision) -> ProducerIdentity | None:
        if decision.write is None:
            return decision.reply
        self.maybe_crash("before record")
        write = decision.write
        if self.epoch_start and not self.records:
            write = write._replace(producer_epoch=self.epoch_start)
            decision = replace(decision, reply=ProducerIdentity(write.producer_id, write.producer_epoch))
        value = None if write.state is TxnState.DEAD else encode_value(write, self.version)
        self.records.append((encode_key(write.transactional_id), value))
        self.note_decision(decision)
        self.maybe_crash("after record")
        self.coordinator.apply(write)
        if decision.markers is not None:
            self.complete(decision.markers)
        return decision.reply

    def note_decision(self, decision: Decision) -> None:
        write = decision.write
        assert write is not None
        if write.state.is_decided:
            for partition in write.partitions:
                for entry in reversed(self.logs[partition]):
                    if entry.producer_id == write.producer_id and entry.commit is not None:
                        break
                    if entry.producer_id == write.producer_id and entry.token is not None:
                        outcome = write.state is TxnState.PREPARE_COMMIT
                        assert self.decided.setdefault(entry.token, outcome) == outcome, "decided twice"

    def complete(self, markers: Markers) -> None:
        written = self.written.setdefault(markers.transactional_id, set())
        for partition in markers.partitions:
            if partition in written:
                continue
            self.maybe_crash(f"before marker {partition}")
            if self.rng.random() < self.disk_full_chance:
                self.log("    disk full, no marker in", partition)
                return
            written.add(partition)
            self.logs[partition].append(Entry(markers.producer_id, markers.epoch, commit=markers.commit))
            self.maybe_crash(f"after marker {partition}")
        del self.written[markers.transactional_id]
        self.perform(Decision(write=self.coordinator.markers_written(markers.transactional_id, self.now_ms)))

    def finish(self) -> None:
        """As the broker does now and then."""
        for markers in self.coordinator.unfinished():
            self.complete(markers)

    def load(self, coordinator: TransactionCoordinator, key: bytes, value: bytes | None) -> None:
        name = decode_key(key)
        assert name is not None
        coordinator.load(name, None if value is None else decode_value(name, value), self.now_ms)

    def restart(self) -> None:
        self.coordinator = self._coordinator()
        self.written.clear()
        for key, value in self.records:
            self.load(self.coordinator, key, value)
        chance, self.crash_chance = self.crash_chance, self.crash_chance / 2
        try:
            self.finish()
        except Crash:
            self.restart()
        self.crash_chance = chance

    def append(self, client: Client, partition: TopicPartition) -> None:
        """A produce of one transactional batch, as the partition's leader checks it."""
        identity = client.identity
        assert identity is not None and client.token is not None
        latest = max((one.epoch for one in self.logs[partition] if one.producer_id == identity.producer_id), default=-1)
        if identity.epoch < latest:
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if client.version >= 2:
            self.perform(self._add(client, [partition]))
        else:
            self.coordinator.verify(client.transactional_id, identity.producer_id, identity.epoch, partition)
        self.logs[partition].append(Entry(identity.producer_id, identity.epoch, token=client.token))

    def _add(self, client: Client, partitions: list[TopicPartition]) -> Decision:
        assert client.identity is not None
        return self.coordinator.add_partitions(
            client.transactional_id,
            client.identity.producer_id,
            client.identity.epoch,
            partitions,
            client.version,
            self.now_ms,
        )

    # --- events

    def step(self) -> None:
        self.now_ms += self.rng.choice((1, 10, 1000))
        events = {
            self.start_client: 1.0,
            self.init: 3.0,
            self.begin_or_produce: 9.0,
            self.end: 6.0,
            self.expire: 0.5,
            self.finish: 1.0,
            self.stray_write: 1.0,
            self.set_version: 0.1,
        }
        event = self.rng.choices(list(events), list(events.values()))[0]
        try:
            event()
        except Crash:
            self.restart()
        self.check()

    def set_version(self) -> None:
        """UpdateFeatures while transactions are open."""
        self.version = self.coordinator.version = self.rng.choice((1, 2))

    def pick(self) -> Client | None:
        return self.rng.choice(self.clients) if self.clients else None

    def start_client(self) -> None:
        if len(self.clients) >= 4:
            self.clients.pop(self.rng.randrange(len(self.clients)))  # a client killed
        self.clients = [one for one in self.clients if not one.fenced]
        self.next_name += 1
        self.clients.append(Client(self.next_name, self.rng.choice(IDS), self.rng.choice((0, 1, 2))))

    def init(self) -> None:
        client = self.pick()
        if client is None or client.fenced:
            return
        expected = client.identity if client.identity is not None and self.rng.random() < 0.5 else None
        self.log("init", client.name, client.transactional_id, "expected", expected)
        try:
            while True:
                decision = self.coordinator.init_producer(
                    client.transactional_id, self.rng.choice((500, 5_000)), expected, self.new_producer_id, self.now_ms
                )
                reply = self.perform(decision)
                if reply is not None:
                    break
        except ApiError as error:
            self.refused(client, error)
            return
        assert reply is not None
        lost = self.rng.random() < 0.2
        self.log("   ->", reply, "answer lost" if lost else "")
        history = self.identities[client.transactional_id]
        identity = (reply.producer_id, reply.epoch)
        if identity in history:
            assert expected is not None and history[-1] == identity, "an identity was given out twice"
        else:
            history.append(identity)
        if not lost:
            client.identity = reply
            client.token, client.ending = None, None
            client.touched.clear()

    def begin_or_produce(self) -> None:
        client = self.pick()
        if client is None or client.identity is None or client.fenced or client.ending is not None:
            return
        if client.token is None:
            client.token, self.next_token = self.next_token, self.next_token + 1
        partition = self.rng.choice(PARTITIONS)
        self.log("produce", client.name, client.identity, "txn", client.token, partition)
        try:
            if client.version < 2 and partition not in client.touched:
                self.perform(self._add(client, [partition]))
                client.touched.add(partition)
            self.append(client, partition)
            client.touched.add(partition)
        except ApiError as error:
            self.refused(client, error)

    def stray_write(self) -> None:
        """A batch that was on its way when its transaction ended, or a client that forgot to add its partition."""
        client = self.pick()
        if client is None or client.identity is None or client.version >= 2 or client.touched:
            return
        known = self.coordinator.get(client.transactional_id)
        if known is not None and known.state is TxnState.ONGOING:
            return  # into the next transaction it would be let: that is why there is a version 2
        held, client.token = client.token, self.next_token
        self.next_token += 1
        try:
            self.append(client, self.rng.choice(PARTITIONS))
        except ApiError as error:
            self.log("stray write of", client.name, "refused", error.code.name)
        finally:
            client.token = held

    def end(self) -> None:
        client = self.pick()
        if client is None or client.identity is None or client.fenced or client.token is None:
            return
        commit = self.rng.random() < 0.6 if client.ending is None else client.ending
        if commit and not client.touched:
            return
        client.ending = commit
        self.log("end", client.name, client.identity, "txn", client.token, "commit" if commit else "abort")
        try:
            decision = self.coordinator.end(
                client.transactional_id,
                client.identity.producer_id,
                client.identity.epoch,
                commit,
                client.version,
                self.new_producer_id,
                self.now_ms,
            )
            reply = self.perform(decision)
        except ApiError as error:
            self.refused(client, error)
            return
        if self.rng.random() < 0.2:
            self.log("   answer lost")
            return
        self.promised[client.token] = commit
        client.token, client.ending = None, None
        client.touched.clear()
        if client.version >= 2:
            assert reply is not None
            client.identity = reply
            if (reply.producer_id, reply.epoch) not in self.identities[client.transactional_id]:
                self.identities[client.transactional_id].append((reply.producer_id, reply.epoch))

    def expire(self) -> None:
        if self.rng.random() < 0.3:
            self.now_ms += self.rng.choice((600, 6_000, 700_000))
        for name in self.coordinator.overdue(self.now_ms):
            self.log("overdue", name)
            self.perform(self.coordinator.abort_overdue(name, self.new_producer_id, self.now_ms))
        for forgotten in self.coordinator.unused(self.now_ms):
            self.log("unused", forgotten.transactional_id)
            self.identities[forgotten.transactional_id].clear()
            self.perform(Decision(write=forgotten))

    def refused(self, client: Client, error: ApiError) -> None:
        self.log("   refused", error.code.name)
        if error.code in (
            ErrorCode.PRODUCER_FENCED,
            ErrorCode.INVALID_PRODUCER_EPOCH,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ):
            client.fenced = True
        elif error.code is ErrorCode.INVALID_TXN_STATE:
            client.token, client.ending = None, None
            client.touched.clear()
        else:
            assert error.code is ErrorCode.CONCURRENT_TRANSACTIONS, error

    # --- invariants

    def check(self) -> None:
        self.check_replay_is_the_state()
        for partition, log in self.logs.items():
            self.check_partition(partition, log)
        for token, commit in self.promised.items():
            assert self.decided.get(token, commit) == commit, f"transaction {token} ended otherwise than promised"

    def check_replay_is_the_state(self) -> None:
        while self.mirrored < len(self.records):
            self.load(self.mirror, *self.records[self.mirrored])
            self.mirrored += 1
        live = {one.transactional_id: one._replace(last_epoch=NO_EPOCH) for one in self.coordinator}
        assert live == {one.transactional_id: one._replace(last_epoch=NO_EPOCH) for one in self.mirror}

    def check_partition(self, partition: TopicPartition, log: list[Entry]) -> None:
        epochs: dict[int, int] = {}
        open_tokens: dict[int, set[int]] = {}
        for entry in log:
            assert entry.epoch >= epochs.get(entry.producer_id, 0), "an epoch went back"
            epochs[entry.producer_id] = entry.epoch
            if entry.token is not None:
                tokens = open_tokens.setdefault(entry.producer_id, set())
                tokens.add(entry.token)
                assert len(tokens) == 1, "two transactions of one producer are open at once"
            else:
                for token in open_tokens.pop(entry.producer_id, set()):
                    assert self.decided[token] == entry.commit, "a marker contradicts the decision"
        for producer_id, tokens in open_tokens.items():
            # What is open in the log is open in the coordinator: nothing hangs.
            holders = [one for one in self.coordinator if one.producer_id == producer_id]
            assert holders and partition in holders[0].partitions, f"transaction {tokens} hangs in {partition}"
            assert holders[0].state is TxnState.ONGOING or holders[0].state.is_decided

    def settle(self) -> None:
        """Nothing happens any more but time: every transaction must come to its end."""
        self.crash_chance = self.disk_full_chance = 0
        self.finish()
        self.now_ms += 100_000
        self.expire()
        for one in self.coordinator:
            assert one.state is not TxnState.ONGOING and not one.state.is_decided
        for log in self.logs.values():
            unfinished = set()
            for entry in log:
                (unfinished.add if entry.token is not None else unfinished.discard)(entry.producer_id)
            assert not unfinished, "the last stable offset is stuck"
        self.check()


def run(seed: int, steps: int = 100, trace: bool = False) -> System:
    system = System(seed, epoch_start=EPOCH_MAX - 4 if seed % 5 == 0 else 0, trace=trace)
    system.crash_chance = (0.0, 0.02, 0.1)[seed % 3]
    system.disk_full_chance = (0.0, 0.2)[seed // 3 % 2]
    for _ in range(steps):
        system.step()
    system.settle()
    return system


if __name__ == "__main__":
    run(int(sys.argv[1]), trace=True)
