"""What the API answers when it refuses: Confluent's status, error code and message for each case."""

from __future__ import annotations


class RegistryError(Exception):
    """An answer with this status. `code` begins with the status, as Confluent's do, or is the status itself."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = code if code < 1000 else code // 100
        self.message = message


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(name: object = None) -> RegistryError:
    return RegistryError(40403, "Schema not found" if name is None else f"Schema {name} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40406, f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def compatibility_not_configured(subject: str) -> RegistryError:
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def mode_not_configured(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(details: str) -> RegistryError:
    return RegistryError(40901, f"Schema being registered is incompatible with an earlier schema for subject {details}")


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(42201, reason)


def invalid_version(version: str) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and the "
        'string "latest"',
    )


def invalid_level() -> RegistryError:
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive",
    )


def invalid_mode(mode: str) -> RegistryError:
    return RegistryError(
        42204, f"Invalid mode {mode}. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, FORWARD and IMPORT"
    )


def not_permitted(reason: str) -> RegistryError:
    return RegistryError(42205, reason)


def reference_exists(who: str) -> RegistryError:
    return RegistryError(42206, f"One or more references exist to the schema {who}.")


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def too_large(reason: str) -> RegistryError:
    return RegistryError(42209, reason)


def store_error(reason: str) -> RegistryError:
    return RegistryError(50001, reason)


def timed_out(reason: str) -> RegistryError:
    return RegistryError(50002, reason)


def forwarding_failed(reason: str) -> RegistryError:
    return RegistryError(50003, reason)


def unknown_leader() -> RegistryError:
    return RegistryError(50004, "Register operation failed because no leader is elected: try again in a moment")
