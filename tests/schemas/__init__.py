"""Records with schemas of a registry, on the side of those who read and write them."""
