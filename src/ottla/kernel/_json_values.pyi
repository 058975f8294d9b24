from ottla.kernel.json_values_pure import JsonDecoder as JsonDecoder
