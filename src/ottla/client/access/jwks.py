"""The keys that bearer tokens may be signed with: a JWKS, from a file or from a URL that only the operator names.

They are read at the start, again after a while, and when a token names a key that is not among them; while that fails
they stay as they were. What a token says of where its keys are is ignored.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from urllib.parse import urlsplit
from urllib.request import build_opener

from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet

from ottla.client.access.redirects import NoRedirects, pointed_elsewhere
from ottla.common.errors import OttlaError

_JWKS_BYTES_MAX = 1024 * 1024
_FETCH_S = 10
# A key that is not there is looked for no more often.
_LOOK_AGAIN_MS = 60_000


class TrustedKeys:
    def __init__(
        self, url: str, *, setting: str, now_ms: Callable[[], int], log: logging.Logger, start: Callable[..., object]
    ) -> None:
        """`setting`: what the operator wrote the URL in; `start`: runs a function in a thread. Raises OttlaError."""
        if urlsplit(url).scheme not in ("file", "https", "http"):
            raise OttlaError(f"{setting} must be a file: or https: URL.")
        self._url, self._now_ms, self._log, self._start = url, now_ms, log, start
        self._keys = _key_set(_read(url), url)
        self._read_ms = now_ms()
        self._is_reading = False
        # How often others were read: what was made with those before may not hold any more.
        self.generation = 0

    def refresh(self, after_ms: int) -> None:
        """Reads them again in the background if that was longer ago."""
        now_ms = self._now_ms()
        if now_ms - self._read_ms >= after_ms and not self._is_reading:
            self._read_ms, self._is_reading = now_ms, True
            self._start(self._read_again)

    def find(self, key_id: str | None) -> Key:
        """Raises KeyError. A token that names none may be signed with the only one there is."""
        keys = self._keys.keys
        for key in keys:
            if key.kid == key_id if key_id is not None else len(keys) == 1:
                return key
        self.refresh(_LOOK_AGAIN_MS)
        raise KeyError(key_id)

    def _read_again(self) -> None:
        try:
            self._keys = _key_set(_read(self._url), self._url)
            self.generation += 1
        except OttlaError as error:
            self._log.error("keeping the keys of tokens as they were: %s", error)
        finally:
            self._is_reading = False


def _read(url: str) -> bytes:
    try:
        with build_opener(NoRedirects).open(url, timeout=_FETCH_S) as answer:
            data: bytes = answer.read(_JWKS_BYTES_MAX)
            return data
    except (OSError, ValueError) as error:
        why = pointed_elsewhere(error) or str(error)
        raise OttlaError(f"the keys of tokens cannot be read from {url}: {why}.") from None


def _key_set(data: bytes, url: str) -> KeySet:
    try:
        return KeySet.import_key_set(json.loads(data))
    except (JoseError, ValueError, KeyError, TypeError) as error:
        raise OttlaError(f"{url} is not a set of keys (JWKS): {error}.") from None
