"""A broker that kills itself with SIGKILL at a given step of completing its first transaction.

`python -m tests.crash.dying_broker STEP start ...` is `ottla start ...`. Steps are counted from the record that decides
the transaction: 0 is just after it was written, 1 just after the first marker, and so on; the last is just after the
record that completes it, before anybody is told.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tests.support.brokers import OttlaProcess


class DyingBroker(OttlaProcess):
    step = 0

    def command(self) -> list[str]:
        command = super().command()
        at = command.index("ottla")
        return [*command[:at], "tests.crash.dying_broker", str(self.step), *command[at + 1 :]]


def die_at(step: int) -> None:
    from ottla.broker.coordinators.coordinator_log import CoordinatorLog
    from ottla.broker.coordinators.transactions.transaction_markers import MarkerWriter
    from ottla.transactions.transaction import Transaction

    append, write = CoordinatorLog.append, MarkerWriter.write
    done = -1  # nothing is decided yet

    def advance() -> None:
        nonlocal done
        done += 1
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def appending(self: Any, records: Any, producer: Any) -> int:
        offset = append(self, records, producer)
        if isinstance(records[0], Transaction) and (records[0].state.is_decided or done >= 0):
            advance()
        return offset

    def writing(self: Any, *arguments: Any) -> Any:
        waiting = write(self, *arguments)
        advance()
        return waiting

    CoordinatorLog.append = appending  # type: ignore[method-assign]
    MarkerWriter.write = writing  # type: ignore[method-assign]


if __name__ == "__main__":
    die_at(int(sys.argv.pop(1)))
    from ottla.cli.main import main

    main()
