"""Watching a cluster from outside: how far every group is behind, what to think of it, and whom to tell.

A product: it reaches clusters over the wire only, and works on Apache Kafka as well. `burrow.py` and
`under_replication.py` are pure rules, `sampling.py` asks the cluster, `history.py` remembers for a while, `monitor.py`
puts them together, and `metrics.py`, `api.py` and `webhooks.py` tell others.
"""
