"""How far a request is on its way in: `router.py` `handle` hands it to those who see it first.

Each of them hands it back with its own stage: who observes requests (metrics, the request log), then who counts what it
costs its client (quotas).
"""

ARRIVED, OBSERVED, COUNTED = range(3)
