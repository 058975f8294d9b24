# ruff: noqa: I001
from ottla.kernel.decode_pure import BYTES_MAX as BYTES_MAX, DECOMPRESSED_BYTES_MAX as DECOMPRESSED_BYTES_MAX
from ottla.kernel.decode_pure import HEADERS_TYPE as HEADERS_TYPE, ROWS_MAX as ROWS_MAX
from ottla.kernel.decode_pure import Decoder as Decoder, fetched_until as fetched_until
from ottla.kernel.checksum import crc32c as crc32c

def crc32c_by_tables(data: object) -> int: ...
