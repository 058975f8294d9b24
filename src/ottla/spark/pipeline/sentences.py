"""What Spark says of an error, as one sentence. Reading a file needs it, and must not load what talks to brokers."""

from __future__ import annotations

import re

_SPARK_CLASS = re.compile(r"^\[[A-Z_.0-9]+\]\s*")


def first_sentence(text: str) -> str:
    """Spark's messages begin with a class in brackets and go on with plans and stack traces."""
    lines = [line for line in text.strip().splitlines() if line.strip()] or ["no reason was given"]
    # Py4J says first which call failed, then with which exception.
    line = lines[1] if lines[0].startswith("An error occurred while calling") and len(lines) > 1 else lines[0]
    line = re.sub(r"^:?\s*[\w.$]+(?:Exception|Error): ", "", line)
    line = _SPARK_CLASS.sub("", line.strip())
    line = re.sub(r"\s*SQLSTATE: \w+", "", line).strip().rstrip(":;. ")
    return line + "."
