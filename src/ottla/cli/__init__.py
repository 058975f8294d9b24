"""The `ottla` command. It reaches brokers only over the wire, so it works on any Kafka cluster.

To trace a command, read `main` (exit statuses), `settings` (options of every command), `connection` (librdkafka without
its noise), then the verb's own module.
"""
