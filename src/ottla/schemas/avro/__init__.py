"""Avro's schemas as columns of Arrow's, and as programs for the kernel that fill them."""
