"""Which bearer tokens are good: the section [oauthbearer] of the file of users. Its names are those of a broker's
settings `sasl.oauthbearer.*`.

    [oauthbearer]
    jwks.endpoint.url = "https://login.example/keys"
    expected.issuer = "https://login.example"
    expected.audience = ["registry"]
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.common.errors import OttlaError


class TokenSettings(NamedTuple):
    jwks_url: str
    issuer: str
    audience: tuple[str, ...]
    user_claim: str = "sub"
    clock_skew_s: int = 30
    refresh_ms: int = 3_600_000


def token_settings(path: str, tree: Any) -> TokenSettings:
    """Raises OttlaError, which says what is wrong with the section."""
    given = _flat(tree)
    audience = given.pop("expected.audience", None)
    if isinstance(audience, str):
        audience = [audience]
    if not audience or not isinstance(audience, list) or not all(isinstance(one, str) for one in audience):
        raise OttlaError(f'{path}: [oauthbearer] needs expected.audience, as in ["registry"].')
    texts = {name: given.pop(name, None) for name in ("jwks.endpoint.url", "expected.issuer")}
    texts["sub.claim.name"] = given.pop("sub.claim.name", "sub")
    for name, text in texts.items():
        if not isinstance(text, str) or not text:
            raise OttlaError(f'{path}: [oauthbearer] needs {name}, as in {name} = "...".')
    numbers = {
        "clock.skew.seconds": given.pop("clock.skew.seconds", 30),
        "jwks.endpoint.refresh.ms": given.pop("jwks.endpoint.refresh.ms", 3_600_000),
    }
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise OttlaError(f"{path}: {name} of [oauthbearer] is a whole number.")
    if given:
        known = ", ".join(sorted((*texts, *numbers, "expected.audience")))
        raise OttlaError(f"{path}: [oauthbearer] has '{min(given)}'; known are {known}.")
    return TokenSettings(
        texts["jwks.endpoint.url"],
        texts["expected.issuer"],
        tuple(audience),
        texts["sub.claim.name"],
        numbers["clock.skew.seconds"],
        numbers["jwks.endpoint.refresh.ms"],
    )


def _flat(tree: Any, before: str = "") -> dict[str, Any]:
    """TOML reads `expected.issuer` as one table within another."""
    if not isinstance(tree, dict):
        return {before: tree}
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= _flat(value, f"{before}.{name}" if before else name)
    return found
