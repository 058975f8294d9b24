"""Logins: who a client of a SASL listener is, before anything else it says is heard."""
