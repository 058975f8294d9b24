"""The command as people run it: a child process, its output, its exit status."""
