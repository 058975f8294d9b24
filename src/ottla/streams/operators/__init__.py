"""What the nodes of a topology do, one class each; `dsl` puts them into topologies."""
