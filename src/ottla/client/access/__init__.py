"""How a client gets in: TLS, SASL and the settings that name them, as Java and librdkafka write them."""
