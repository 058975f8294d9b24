"""What operators see of a broker: counts and times of requests, metrics over HTTP, logs of requests."""
