from ottla.kernel.walk_pure import keyless_records as keyless_records
