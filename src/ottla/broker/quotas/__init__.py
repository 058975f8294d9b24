"""Quotas: what clients may use of a broker, how that is changed, and how whoever uses more is slowed down."""
