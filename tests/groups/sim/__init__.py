"""Groups under random schedules: clients of both protocols, crashes, a disk that fails, topics that change.

    python -m tests.groups.sim SEED      replays one schedule and prints what happens

`world` is the coordinator, its log and the schedule; `clients` are members as real ones behave; `invariants` is what
must hold after every event.
"""
