"""A schema registry with Confluent's API: what records look like, and which changes of that are refused.

To trace a registration, read `api/routes.py` and `api/changing.py` (HTTP to a call) -> `instance.py` (who writes: this
instance, or one that it forwards to) -> `changes.py` (pure: a request becomes records and a reply) -> `parsing.py` with
`ottla.avro`, `json_schema/`, `protobuf/` (text to a schema) -> `topic/writer.py` (to the topic `_schemas`, fenced) ->
`topic/reader.py` (read back) -> `state.py` (only `replay` changes it) -> the reply.
"""
