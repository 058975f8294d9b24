"""How far a request is on its way in: `router.py` `handle` hands it to those who see it first."""

ARRIVED, OBSERVED, COUNTED = range(3)
