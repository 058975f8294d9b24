"""`ottla cluster`: the group; `info` and `health` look at any cluster, `local` runs one on this machine."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

cluster = VerbGroup(
    "cluster",
    help="The cluster as a whole, and a cluster on this machine.",
    sections=(
        Section(
            "Look at any cluster",
            (
                Lazy("info", "cluster.info:info", "Cluster id, brokers, number of topics."),
                Lazy("health", "cluster.health:health", "Leaderless and under-replicated partitions, full disks."),
            ),
        ),
        Section(
            "Run one on this machine",
            (
                Lazy("up", "cluster.local:up", "Start brokers and their ZooKeeper in the background."),
                Lazy("status", "cluster.local:status", "Processes, addresses, states, leaders."),
                Lazy("start", "cluster.local:start", "Start a broker, or ZooKeeper, that is not running."),
                Lazy("restart", "cluster.local:restart", "Stop a broker gracefully and start it again."),
                Lazy("kill", "cluster.local:kill", "SIGKILL: as a crash does it."),
                Lazy("pause", "cluster.local:pause", "SIGSTOP: alive, and silent."),
                Lazy("resume", "cluster.local:resume", "SIGCONT: go on after a pause."),
                Lazy("down", "cluster.local:down", "Stop all of it; the data stays."),
            ),
        ),
    ),
)
