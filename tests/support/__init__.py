"""What tests and the benchmark share: real broker processes (ours and Apache Kafka's) and where Kafka's jars are."""
