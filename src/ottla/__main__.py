"""`python -m ottla` is the `ottla` command."""

from ottla.cli.entry import main

main()
