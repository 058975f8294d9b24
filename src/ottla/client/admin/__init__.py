"""What an administrator asks a cluster for, one module for each kind of question."""
