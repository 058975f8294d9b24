"""TLS and SASL as settings say them: by the names of Java's clients and by librdkafka's, to the same value.

What only concerns a Java runtime, or a mechanism that is not used, is accepted. What would weaken or change who is
trusted if it was ignored is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.access.jaas import parse_jaas
from ottla.client.access.java_stores import pem_store
from ottla.client.access.pem import tidied
from ottla.client.access.security import Sasl, Security, Tls, protocol_name
from ottla.client.setting_names import KnownNames
from ottla.common.errors import OttlaError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS = {protocol_name(has_tls=tls, has_sasl=sasl): (tls, sasl) for sasl in (False, True) for tls in (False, True)}
_LOGIN_MODULES = {"PLAIN": "PlainLoginModule", "SCRAM-SHA-256": "ScramLoginModule", "SCRAM-SHA-512": "ScramLoginModule"}
_PREFIXES = ("ssl.", "sasl.", "security.")
_VERIFICATION = "enable.ssl.certificate.verification"

_USED = frozenset(
    f"""
    security.protocol sasl.mechanism sasl.mechanisms sasl.jaas.config sasl.username sasl.password
    ssl.truststore.type ssl.truststore.location ssl.truststore.certificates ssl.ca.location ssl.ca.pem
    ssl.keystore.type ssl.keystore.location ssl.keystore.certificate.chain ssl.keystore.key ssl.key.password
    ssl.certificate.location ssl.certificate.pem ssl.key.location ssl.key.pem
    ssl.endpoint.identification.algorithm ssl.enabled.protocols {_VERIFICATION}
    """.split()
)
_WITHOUT_EFFECT = frozenset(
    """
    sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.config sasl.oauthbearer.expected.audience
    sasl.oauthbearer.expected.issuer sasl.oauthbearer.extensions sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.method
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url ssl.ca.certificate.stores ssl.curves.list ssl.keymanager.algorithm
    ssl.keystore.password ssl.protocol ssl.provider ssl.secure.random.implementation ssl.sigalgs.list
    ssl.trustmanager.algorithm ssl.truststore.password
    """.split()  # noqa: SIM905
)
_JAVA_CODE = "it names Java code, and there is none here"
_REFUSED = {
    "sasl.client.callback.handler.class": _JAVA_CODE,
    "sasl.login.callback.handler.class": _JAVA_CODE,
    "sasl.login.class": _JAVA_CODE,
    "security.providers": _JAVA_CODE,
    "ssl.engine.factory.class": _JAVA_CODE,
    "ssl.engine.id": "engines of OpenSSL are not loaded",
    "ssl.engine.location": "engines of OpenSSL are not loaded",
    "ssl.providers": "providers of OpenSSL are not loaded",
    "ssl.cipher.suites": "choose ciphers on the brokers, or versions with ssl.enabled.protocols",
    "ssl.crl.location": "lists of revoked certificates are not read",
}
_NAMES = KnownNames("setting", "", _USED | _WITHOUT_EFFECT, _REFUSED)


def is_about_security(name: str) -> bool:
    return name.startswith(_PREFIXES) or name == _VERIFICATION


def parse_security(given: Mapping[str, str]) -> Security:
    """From settings without a prefix, of which those about TLS and SASL are read. Raises OttlaError, in whose sentence
    there is no secret."""
    ours = {name: str(value) for name, value in given.items() if is_about_security(name)}
    for name in ours:
        _NAMES.check(name)
    protocol = ours.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise OttlaError(f"security.protocol is one of {', '.join(PROTOCOLS)}, not '{protocol}'.")
    has_tls, has_sasl = PROTOCOLS[protocol]
    return Security(_tls(ours) if has_tls else None, _sasl(ours) if has_sasl else None)


# --- SASL


def _sasl(given: Mapping[str, str]) -> Sasl:
    supported = f"{', '.join(MECHANISMS[:-1])} and {MECHANISMS[-1]} are"
    mechanism = (given.get("sasl.mechanism") or given.get("sasl.mechanisms") or "").strip().upper()
    if not mechanism:
        raise OttlaError(f"sasl.mechanism is missing: {supported} supported.")
    if mechanism not in MECHANISMS:
        raise OttlaError(f"sasl.mechanism {mechanism} is not supported: {supported}.")
    username, password = _credentials(given, mechanism)
    if mechanism == "PLAIN" and "\0" in username + password:
        raise OttlaError("the user's name and password must not have a null character in them.")
    return Sasl(mechanism, username, password)


def _credentials(given: Mapping[str, str], mechanism: str) -> tuple[str, str]:
    if "sasl.jaas.config" not in given:
        if not given.get("sasl.username") or "sasl.password" not in given:
            raise OttlaError(
                "SASL needs a user and a password: give sasl.jaas.config, or sasl.username and sasl.password."
            )
        return given["sasl.username"], given["sasl.password"]
    if "sasl.username" in given or "sasl.password" in given:
        raise OttlaError("the user is named twice: give sasl.jaas.config, or sasl.username and sasl.password.")
    module, options = parse_jaas(given["sasl.jaas.config"])
    wanted = _LOGIN_MODULES[mechanism]
    if module != wanted:
        raise OttlaError(f"sasl.jaas.config has {module}, but sasl.mechanism is {mechanism}, which wants {wanted}.")
    if options.get("tokenauth", "false").lower() == "true":
        raise OttlaError("sasl.jaas.config has tokenauth: delegation tokens are not supported.")
    if not options.get("username") or "password" not in options:
        raise OttlaError("sasl.jaas.config has no username or no password.")
    return options["username"], options["password"]


# --- TLS


def _tls(given: Mapping[str, str]) -> Tls:
    verifies = _boolean(given, _VERIFICATION)
    certificate, key, identity = _identity(given)
    ca_pem = _pem(given, ("ssl.truststore.certificates", "ssl.ca.pem"), "CERTIFICATE")
    ca_location = pem_store(given, "truststore") or given.get("ssl.ca.location") or None
    if ca_pem and ca_location:
        raise OttlaError(
            f"whom to trust is said twice: give the file {ca_location} or the text of certificates, not both."
        )
    return Tls(
        ca_location=None if ca_location == "probe" else ca_location,  # librdkafka's word for the system's
        ca_pem=ca_pem,
        certificate_location=certificate,
        key_location=key,
        identity_pem=identity,
        key_password=given.get("ssl.key.password"),
        checks_certificate=verifies,
        checks_host_name=verifies and _checks_host_name(given),
        versions=_versions(given),
    )


def _identity(given: Mapping[str, str]) -> tuple[str | None, str | None, str | None]:
    """The file of certificates, that of the key, or both as text."""
    chain = _pem(given, ("ssl.keystore.certificate.chain", "ssl.certificate.pem"), "CERTIFICATE")
    key = _pem(given, ("ssl.keystore.key", "ssl.key.pem"), "PRIVATE KEY")
    if chain is not None and key is not None:
        return None, None, key + chain
    if chain is not None or key is not None:
        given_one = "certificate" if chain is not None else "key"
        raise OttlaError(
            f"there is only the {given_one} of this client: ssl.keystore.certificate.chain and ssl.keystore.key (or "
            "ssl.certificate.pem and ssl.key.pem) belong together."
        )
    if (store := pem_store(given, "keystore")) is not None:
        return store, None, None
    certificate, key_location = given.get("ssl.certificate.location") or None, given.get("ssl.key.location") or None
    if key_location is not None and certificate is None:
        raise OttlaError("ssl.key.location is given without ssl.certificate.location: name the key's certificate too.")
    return certificate, key_location, None


def _pem(given: Mapping[str, str], names: tuple[str, str], what: str) -> str | None:
    for name in names:
        if given.get(name, "").strip():
            return tidied(given[name], name, what)
    return None


def _checks_host_name(given: Mapping[str, str]) -> bool:
    name = "ssl.endpoint.identification.algorithm"
    algorithm = given.get(name, "https").strip().lower()
    if algorithm not in ("https", "none", ""):
        raise OttlaError(f"{name} is https, or empty to leave the name in a certificate unchecked, not '{algorithm}'.")
    return algorithm == "https"


def _versions(given: Mapping[str, str]) -> tuple[str, ...]:
    spoken = Tls.versions
    listed = [
        protocol.strip()
        for protocol in given.get("ssl.enabled.protocols", ",".join(spoken)).split(",")
        if protocol.strip()
    ]
    chosen = tuple(protocol for protocol in spoken if protocol in listed)
    if not chosen:
        raise OttlaError(f"ssl.enabled.protocols has none of {' and '.join(spoken)}, which are the ones spoken here.")
    return chosen


def _boolean(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "true").strip().lower()
    if text not in ("true", "false"):
        raise OttlaError(f"{name} is true or false, not '{text}'.")
    return text == "true"
