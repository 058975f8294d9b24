"""The first users who log in by SCRAM: without them nobody could come in to add others.

They come from `ottla.first.users`, which is written as Kafka's `kafka-storage format --add-scram` has it; several have
semicolons between them:

    SCRAM-SHA-512=[name=admin,password=secret]
    SCRAM-SHA-512=[name=admin,salt="BASE64",saltedpassword="BASE64",iterations=4096]

They are added when the broker starts, unless a user of that name is there: what was changed since stays so.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import secrets
from collections.abc import Mapping

from ottla.common.errors import OttlaError
from ottla.metadata import nodes
from ottla.metadata.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
    credential_of,
    encode_credentials,
    salted,
)
from ottla.metastore.port import Create, MetadataStore, StoreConflict

_FIRST_USER = re.compile(r"\s*(SCRAM-SHA-256|SCRAM-SHA-512)=\[([^\[\]]*)\]\s*")
_SALT_BYTES = 24


def first_users(text: str) -> dict[str, dict[str, ScramCredential]]:
    """Raises OttlaError, without a password in it."""
    users: dict[str, dict[str, ScramCredential]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        found = _FIRST_USER.fullmatch(part)
        if found is None:
            raise _unreadable()
        fields = {}
        for pair in found[2].split(","):
            name, equals, value = pair.strip().partition("=")
            if not equals:
                raise _unreadable()
            fields[name.strip().lower()] = value.strip().strip('"')
        users.setdefault(fields.get("name", ""), {})[found[1]] = _first_credential(found[1], fields)
    if "" in users:
        raise _unreadable()
    return users


def _first_credential(mechanism: str, fields: Mapping[str, str]) -> ScramCredential:
    try:
        iterations = int(fields.get("iterations", ITERATIONS_MIN))
        salt = base64.b64decode(fields["salt"], validate=True) if "salt" in fields else secrets.token_bytes(_SALT_BYTES)
        if "saltedpassword" in fields:
            if "salt" not in fields:
                raise _unreadable()
            password = base64.b64decode(fields["saltedpassword"], validate=True)
        else:
            password = salted(mechanism, fields["password"], salt, iterations)
    except (ValueError, KeyError, binascii.Error):
        raise _unreadable() from None
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise OttlaError(
            f"ottla.first.users wants {iterations} iterations: {ITERATIONS_MIN} to {ITERATIONS_MAX} are good."
        )
    return credential_of(mechanism, password, salt, iterations)


def _unreadable() -> OttlaError:
    return OttlaError(
        "ottla.first.users cannot be read: it has the form SCRAM-SHA-512=[name=NAME,password=PASSWORD], with "
        "semicolons between several."
    )


def add_first_users(store: MetadataStore, text: str) -> None:
    """Before the image is read."""
    for user, credentials in first_users(text).items():
        path = nodes.scram_path(user)
        if store.get(path) is None:
            with contextlib.suppress(StoreConflict):  # another broker was faster
                store.multi([Create(path, encode_credentials(credentials))])
