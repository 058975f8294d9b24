"""Confluent's HTTP API: `routes.py` is the list of paths, `looking.py` answers from the state, `changing.py` goes
through the writer, `requests.py` reads what clients send, `answers.py` is how an answer looks, `app.py` puts all
of it together."""
