"""Log compaction: of each key the last value stays, offsets and order do not change. Kafka's semantics.

plan.py          on the broker's loop: which log is dirtiest, what a worker is to do about it (a `CompactionJob`)
compactor.py     in the worker process: one round over one log, segment group by segment group
  offset_map.py  first pass: key -> last offset, over the part that is new since the last round
  transaction_walk.py, batch_filter.py, walk.py
                 second pass: what stays of each batch
  cleaned_segment.py
                 the `.cleaned` files that result
swap.py          on the loop again: `.cleaned` -> `.swap` -> final names, and what a start does with leftovers
"""
