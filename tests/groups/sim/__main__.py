"""Replay one seed with a transcript."""

import sys

from tests.groups.sim.world import run_seed

run_seed(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40, print)
