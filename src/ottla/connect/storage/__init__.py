"""What a Connect cluster knows, in three compacted topics with Kafka Connect's names and formats."""
