from ottla.kernel.protobuf_pure import ProtobufDecoder as ProtobufDecoder
