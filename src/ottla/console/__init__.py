"""The console: a cluster in the browser. Pages are rendered here, from what the cluster says over Kafka's protocol."""
