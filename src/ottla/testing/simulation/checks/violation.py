from __future__ import annotations


class Violation(Exception):
    """Something that must hold does not. `kind` is the same for the same thing in other runs."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind
