"""Metrics for others to read: histograms that cost little, Prometheus' text in small steps, and a tiny HTTP endpoint.

Brokers, the lag monitor and pipelines on Spark stand on it. It needs no web framework; `prometheus_client` is imported
only where somebody has asked for an endpoint.
"""
