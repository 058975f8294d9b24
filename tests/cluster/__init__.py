"""Three brokers as real processes: what people do to them, and what happens to them."""
