"""Bad input: an error or a closed connection, never a crash, a hang, unbounded memory or a stalled neighbour."""
