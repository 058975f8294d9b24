"""What change data capture of every database has in common: Debezium's settings, names and envelope, and the rule by
which a snapshot of a table and the stream of its changes fit together without a gap and without a repetition."""
