# ruff: noqa: I001
from ottla.kernel.encode_pure import BatchEncoder as BatchEncoder, Encoded as Encoded
from ottla.kernel.encode_pure import partition_for_key as partition_for_key, route as route
