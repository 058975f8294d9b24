"""The tests; a package so that `tests.support` can be imported from anywhere in the tree and from the benchmark."""
