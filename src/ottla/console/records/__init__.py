"""Records of a topic: found, decoded, masked, shown."""
