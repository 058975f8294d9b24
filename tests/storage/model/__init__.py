"""The storage against a model: random histories of one log, checked after every step.

journaled_disk.py  a disk that can lose its power, and a process that can die at any step
batches.py         what is in a log, as plain values, and how consumers read it
history.py         the model: what was appended, what became of it, and what readers must see
subject.py         a log and the model beside it, and how they are compared
actions.py         what may happen to a log, done to both
run.py             a seed becomes a history; a failure becomes a short transcript
"""
