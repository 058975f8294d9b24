"""What the controller of a cluster decides, as pure functions on its image.

Read `settling.py` first: every decision ends there. Then, each alone: `broker_changes.py` (brokers come and go),
`isr_changes.py` (AlterPartition), `reassignments.py`, `preferred.py` (ElectLeaders, balance), `log_dirs.py`,
`rule_changes.py` (min.insync.replicas), `placement.py` (where replicas go). The broker's own controller package turns
what they return into one conditional write to the metadata store.
"""
