"""Changes of PostgreSQL's tables, by logical decoding with its own plugin pgoutput."""
