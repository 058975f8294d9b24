"""A cluster in one thread, from one seed: real brokers on a simulated clock, disk, network and store.

    python -m ottla.testing.simulation --seed 7

plays one history and tells it. The brokers are `ottla.broker.broker.Broker` with all that they are made of: handlers,
partitions, fetchers, controller, coordinators, logs. What they stand on is ours:

- `loop.py`         an event loop whose time jumps to whatever is due next; processes that are paused or killed
- `threads.py`      threads that run one at a time, when the loop says so
- `surroundings.py` chance and time that code takes without a port
- `durable_disk.py` files that know what a power cut leaves of them
- `ensemble.py`, `store.py`  ZooKeeper and its clients: sessions, watches, delays
- `network.py`      connections that are slow, stall, break or are refused

On it run `node.py` (a broker's machine), `clients/` (producers and consumers that remember what they were told),
`faults.py` (what goes wrong) and `checks/` (what must hold all the same). `world.py` puts them together.
"""
