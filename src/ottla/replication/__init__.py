"""Who has which records of a partition, and what follows from it. Pure: no async, no clock, no chance, no disk."""
