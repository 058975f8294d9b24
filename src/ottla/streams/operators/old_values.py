"""Whether a table sends the values before along with those now: only where somebody downstream needs them."""

from __future__ import annotations


class OldValues:
    """One for each table while a topology is made; operators read it when they are made, which is later."""

    def __init__(self) -> None:
        self.are_sent = False
