"""The transaction coordinator (KIP-98, 360, 588, 890) as a pure machine.

`states` has the states and their legal transitions, `transaction` the durable value of one transactional id and its
record, `coordinator` turns requests and the passing of time into records to append, replies and markers to write.
Nothing here waits, reads a clock or rolls dice.
"""
