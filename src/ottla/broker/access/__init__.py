"""Access control on the wire: what each API asks the authorizer for, and what it answers to whoever may not."""
