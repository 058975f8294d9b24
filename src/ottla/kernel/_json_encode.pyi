from ottla.kernel.json_encode_pure import JsonEncoder as JsonEncoder
