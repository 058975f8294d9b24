"""The transaction coordinator as a table, written from Kafka's rules (KIP-98, 360, 447, 588, 890).

Columns are the states of a transactional id that is at epoch 5 of its producer id. Before that, its holder had epoch 4.
A cell is an error, or `ok`; what is written, as a state and the epoch it has then; and `markers` if they are due. `no
reply` means that the request is decided again when the markers are written.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.common.errors import ApiError
from ottla.common.ids import TopicPartition
from ottla.transactions.coordinator import Decision, ProducerIdentity, TransactionCoordinator
from ottla.transactions.states import TxnState
from ottla.transactions.transaction import EPOCH_MAX, Transaction
from tests.support.tables import Cell, cells

NAME, PRODUCER, EPOCH, NOW = "t", 1000, 5, 1_000_000
TIMEOUT_MS, EXPIRATION_MS = 60_000, 600_000
IN, OUT = TopicPartition("data", 0), TopicPartition("data", 1)
STATES = {one.text: one for one in TxnState}

# A client of version 2 ends each transaction with a new epoch; its last one was 4.
VERSION_2 = """
request                     | none                        | Empty                     | Ongoing                              | PrepareCommit           | PrepareAbort            | CompleteCommit            | CompleteAbort
init                        | ok Empty 0                  | ok Empty 6                | no reply PrepareAbort 6 markers      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok Empty 6                | ok Empty 6
init as epoch 5             | ok Empty 0                  | ok Empty 6                | no reply PrepareAbort 6 markers      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok Empty 6                | ok Empty 6
init as epoch 4             | ok Empty 0                  | ok Empty 5                | no reply PrepareAbort 6 markers      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok Empty 5                | ok Empty 5
init as epoch 3             | ok Empty 0                  | PRODUCER_FENCED           | PRODUCER_FENCED                      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | PRODUCER_FENCED           | PRODUCER_FENCED
init as another producer    | ok Empty 0                  | PRODUCER_FENCED           | PRODUCER_FENCED                      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | PRODUCER_FENCED           | PRODUCER_FENCED
add                         | INVALID_PRODUCER_ID_MAPPING | ok Ongoing 5              | ok Ongoing 5                         | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok Ongoing 5              | ok Ongoing 5
add what is in              | INVALID_PRODUCER_ID_MAPPING | ok Ongoing 5              | ok                                   | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok Ongoing 5              | ok Ongoing 5
add at epoch 4              | INVALID_PRODUCER_ID_MAPPING | PRODUCER_FENCED           | PRODUCER_FENCED                      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | PRODUCER_FENCED           | PRODUCER_FENCED
add as another producer     | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING        | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING
verify what is in           | INVALID_PRODUCER_ID_MAPPING | TRANSACTION_ABORTABLE     | ok                                   | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | TRANSACTION_ABORTABLE     | TRANSACTION_ABORTABLE
verify what is not in       | INVALID_PRODUCER_ID_MAPPING | TRANSACTION_ABORTABLE     | TRANSACTION_ABORTABLE                | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | TRANSACTION_ABORTABLE     | TRANSACTION_ABORTABLE
verify at epoch 4           | INVALID_PRODUCER_ID_MAPPING | PRODUCER_FENCED           | PRODUCER_FENCED                      | PRODUCER_FENCED         | PRODUCER_FENCED         | PRODUCER_FENCED           | PRODUCER_FENCED
commit                      | INVALID_PRODUCER_ID_MAPPING | INVALID_TXN_STATE         | ok PrepareCommit 6 markers           | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | INVALID_TXN_STATE         | INVALID_TXN_STATE
abort                       | INVALID_PRODUCER_ID_MAPPING | ok PrepareAbort 6 markers | ok PrepareAbort 6 markers            | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok PrepareAbort 6 markers | ok PrepareAbort 6 markers
commit again, at epoch 4    | INVALID_PRODUCER_ID_MAPPING | PRODUCER_FENCED           | PRODUCER_FENCED                      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok                        | INVALID_TXN_STATE
abort again, at epoch 4     | INVALID_PRODUCER_ID_MAPPING | PRODUCER_FENCED           | PRODUCER_FENCED                      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | INVALID_TXN_STATE         | ok
commit at epoch 3           | INVALID_PRODUCER_ID_MAPPING | PRODUCER_FENCED           | PRODUCER_FENCED                      | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | PRODUCER_FENCED           | PRODUCER_FENCED
commit as another producer  | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING        | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING
time-out                    | nothing                     | nothing                   | no reply PrepareAbort 6 markers      | nothing                 | nothing                 | nothing                   | nothing
expiration                  | nothing                     | no reply Dead 5           | nothing                              | nothing                 | nothing                 | no reply Dead 5           | no reply Dead 5
markers are written         | nothing                     | nothing                   | nothing                              | no reply CompleteCommit 5 | no reply CompleteAbort 5 | nothing                | nothing
"""  # noqa: E501

# A client of an older version keeps its epoch, and it adds its partitions itself.
CLASSIC = """
request                     | none                        | Empty             | Ongoing                         | PrepareCommit           | PrepareAbort            | CompleteCommit    | CompleteAbort
commit                      | INVALID_PRODUCER_ID_MAPPING | INVALID_TXN_STATE | ok PrepareCommit 5 markers      | CONCURRENT_TRANSACTIONS | INVALID_TXN_STATE       | ok                | INVALID_TXN_STATE
abort                       | INVALID_PRODUCER_ID_MAPPING | INVALID_TXN_STATE | ok PrepareAbort 5 markers       | INVALID_TXN_STATE       | CONCURRENT_TRANSACTIONS | INVALID_TXN_STATE | ok
commit again, at epoch 4    | INVALID_PRODUCER_ID_MAPPING | PRODUCER_FENCED   | PRODUCER_FENCED                 | PRODUCER_FENCED         | PRODUCER_FENCED         | PRODUCER_FENCED   | PRODUCER_FENCED
commit as another producer  | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING | INVALID_PRODUCER_ID_MAPPING
add                         | INVALID_PRODUCER_ID_MAPPING | ok Ongoing 5      | ok Ongoing 5                    | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok Ongoing 5      | ok Ongoing 5
init                        | ok Empty 0                  | ok Empty 6        | no reply PrepareAbort 6 markers | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | ok Empty 6        | ok Empty 6
time-out                    | nothing                     | nothing           | no reply PrepareAbort 6 markers | nothing                 | nothing                 | nothing           | nothing
"""  # noqa: E501

# With the last epoch but one: a producer id that has run out of epochs is replaced.
OUT_OF_EPOCHS = """
request | Empty                  | Ongoing                             | CompleteCommit         | CompleteAbort
init    | ok Empty 0 of a new id | no reply PrepareAbort 32767 markers | ok Empty 0 of a new id | ok Empty 0 of a new id
commit  | INVALID_TXN_STATE      | ok PrepareCommit 32767 markers      | INVALID_TXN_STATE      | INVALID_TXN_STATE
"""

_OTHER = PRODUCER + 1
_NEW = PRODUCER + 500
Ask = Callable[[TransactionCoordinator, int, int], Decision]


def _init(expected: ProducerIdentity | None) -> Ask:
    return lambda machine, version, epoch: machine.init_producer(NAME, TIMEOUT_MS, expected, lambda: _NEW, NOW)


def _add(partition: TopicPartition, producer: int = PRODUCER, epochs_ago: int = 0) -> Ask:
    return lambda machine, version, epoch: machine.add_partitions(
        NAME, producer, epoch - epochs_ago, [partition], version, NOW
    )


def _verify(partition: TopicPartition, epochs_ago: int = 0) -> Ask:
    def ask(machine: TransactionCoordinator, version: int, epoch: int) -> Decision:
        machine.verify(NAME, PRODUCER, epoch - epochs_ago, partition)
        return Decision(ProducerIdentity(PRODUCER, epoch))

    return ask


def _end(commit: bool, producer: int = PRODUCER, epochs_ago: int = 0) -> Ask:
    return lambda machine, version, epoch: machine.end(
        NAME, producer, epoch - epochs_ago, commit, version, lambda: _NEW, NOW
    )


def _time_out(machine: TransactionCoordinator, version: int, epoch: int) -> Decision:
    assert machine.overdue(NOW) == []
    return machine.abort_overdue(NAME, lambda: _NEW, NOW + TIMEOUT_MS)


def _expire(machine: TransactionCoordinator, version: int, epoch: int) -> Decision:
    assert machine.unused(NOW) == []
    return next((Decision(write=one) for one in machine.unused(NOW + EXPIRATION_MS)), Decision())


def _markers_written(machine: TransactionCoordinator, version: int, epoch: int) -> Decision:
    return next((Decision(write=machine.markers_written(NAME, NOW)) for _ in machine.unfinished()), Decision())


REQUESTS: dict[str, Ask] = {
    "init": _init(None),
    "init as epoch 5": _init(ProducerIdentity(PRODUCER, 5)),
    "init as epoch 4": _init(ProducerIdentity(PRODUCER, 4)),
    "init as epoch 3": _init(ProducerIdentity(PRODUCER, 3)),
    "init as another producer": _init(ProducerIdentity(_OTHER, 5)),
    "add": _add(OUT),
    "add what is in": _add(IN),
    "add at epoch 4": _add(OUT, epochs_ago=1),
    "add as another producer": _add(OUT, _OTHER),
    "verify what is in": _verify(IN),
    "verify what is not in": _verify(OUT),
    "verify at epoch 4": _verify(IN, epochs_ago=1),
    "commit": _end(True),
    "abort": _end(False),
    "commit again, at epoch 4": _end(True, epochs_ago=1),
    "abort again, at epoch 4": _end(False, epochs_ago=1),
    "commit at epoch 3": _end(True, epochs_ago=2),
    "commit as another producer": _end(True, _OTHER),
    "time-out": _time_out,
    "expiration": _expire,
    "markers are written": _markers_written,
}


def machine_in(state: str, version: int, epoch: int = EPOCH) -> TransactionCoordinator:
    machine = TransactionCoordinator(timeout_ms_max=900_000, id_expiration_ms=EXPIRATION_MS, version=version or 1)
    if state != "none":
        found = STATES[state]
        is_open = found is TxnState.ONGOING or found.is_decided
        machine.load(
            NAME,
            Transaction(
                NAME,
                PRODUCER,
                epoch,
                TIMEOUT_MS,
                found,
                (IN,) if is_open else (),
                started_ms=NOW - 1 if is_open else -1,
                updated_ms=NOW - 1,
                last_epoch=epoch - 1 if version >= 2 else -1,
                previous_producer_id=PRODUCER,
                client_version=version,
            ),
            NOW,
        )
    return machine


def outcome(machine: TransactionCoordinator, request: str, version: int, epoch: int = EPOCH) -> str:
    """In the words of the tables. What is written is also applied: an illegal transition would raise."""
    try:
        decision = REQUESTS[request](machine, version, epoch)
    except ApiError as error:
        return error.code.name
    if decision == Decision():
        return "ok" if request.startswith("add") else "nothing"
    words = ["ok" if decision.reply is not None or request.startswith("add") else "no reply"]
    write = decision.write
    if write is not None:
        machine.apply(write)
        words += [write.state.text, str(write.producer_epoch)]
        if write.producer_id == _NEW and epoch != EPOCH:
            words.append("of a new id")
    if decision.markers is not None:
        words.append("markers")
        assert decision.markers.epoch == write.producer_epoch if write is not None else True
    return " ".join(words)


@pytest.mark.parametrize("cell", cells(VERSION_2), ids=str)
def test_a_client_of_version_2(cell: Cell) -> None:
    assert outcome(machine_in(cell.state, 2), cell.request, 2) == cell.expected


@pytest.mark.parametrize("cell", cells(CLASSIC), ids=str)
def test_a_classic_client(cell: Cell) -> None:
    assert outcome(machine_in(cell.state, 0), cell.request, 0) == cell.expected


@pytest.mark.parametrize("cell", cells(OUT_OF_EPOCHS), ids=str)
def test_a_producer_id_without_epochs(cell: Cell) -> None:
    last = EPOCH_MAX - 1
    assert outcome(machine_in(cell.state, 2, last), cell.request, 2, last) == cell.expected


def test_every_request_and_state_is_in_the_table() -> None:
    table = cells(VERSION_2)
    assert {one.request for one in table} == set(REQUESTS)
    assert {one.state for one in table} == {"none", *STATES} - {"Dead"}
