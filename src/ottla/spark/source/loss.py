"""What happens when offsets are gone that were to be read: the query fails, or a warning says what was skipped."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.client.fetching import DataLoss

_log = logging.getLogger("ottla.spark")


def loss_handler(fail_on_data_loss: bool) -> Callable[[str], None]:
    def handle(sentence: str) -> None:
        if fail_on_data_loss:
            raise DataLoss(f"data were lost: {sentence} Set failOnDataLoss to false to go on with what is there.")
        _log.warning("data were lost: %s", sentence)

    return handle
