"""Clients of other languages against a real broker process; the slow suite runs the same against Apache Kafka."""
