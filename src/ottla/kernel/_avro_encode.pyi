from ottla.kernel.avro_encode_pure import AvroEncoder as AvroEncoder
