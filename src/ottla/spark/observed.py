"""The names under which queries report what they count: frames that Spark observes, and tasks that count themselves."""

from __future__ import annotations

# How many rows go in (one for each stream), and out.
ROWS_IN, ROWS_OUT = "ottla_in_", "ottla_out"
