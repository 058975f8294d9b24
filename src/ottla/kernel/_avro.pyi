from ottla.kernel.avro_pure import AvroDecoder as AvroDecoder, AvroProgram as AvroProgram, schema_ids as schema_ids  # noqa: I001
