"""What must hold in every run. `promises.py` has what clients were told, the others what brokers and the store have.

The checks know nothing of how the brokers work: they look at log files, watermarks, the store's nodes and the answers
that clients got.
"""
