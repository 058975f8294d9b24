"""Ottla Connect: data in and out of topics, by connectors on Spark, managed over Kafka Connect's REST API."""
