"""Settings of TLS, of logins and of who may do what.

Those of TLS and SASL may be given for one listener alone, as `listener.name.NAME.` and the name of the setting, and
those of one mechanism also as `listener.name.NAME.MECHANISM.` and the name.
"""

from __future__ import annotations

from ottla.common.config.checks import Check, at_least, one_of, some_of
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Scope, Unit, boolean, integer, long, names, password, string

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
# Kafka's names of the authorizer that is built in here.
AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
_PER_BROKER = Scope.PER_BROKER


def _are_known(mechanisms: tuple[str, ...]) -> bool:
    return all(mechanism in (*MECHANISMS, "GSSAPI") for mechanism in mechanisms)


class TlsSettings(Configuration):
    ssl_keystore_type = string(
        "ssl.keystore.type",
        "JKS",
        "PEM is read; JKS and PKCS12 are refused, with the command that makes PEM of them.",
        scope=_PER_BROKER,
    )
    ssl_keystore_location = string(
        "ssl.keystore.location",
        None,
        "A PEM file with the broker's private key, its certificate and those between it and its CA. It is read again "
        "when it changes.",
        scope=_PER_BROKER,
    )
    ssl_keystore_key = password(
        "ssl.keystore.key", None, "The private key as PEM text, instead of a file.", scope=_PER_BROKER
    )
    ssl_keystore_certificate_chain = password(
        "ssl.keystore.certificate.chain",
        None,
        "The broker's certificates as PEM text, instead of a file.",
        scope=_PER_BROKER,
    )
    ssl_key_password = password("ssl.key.password", None, "What the private key is encrypted with.", scope=_PER_BROKER)
    ssl_truststore_type = string(
        "ssl.truststore.type", "JKS", "PEM is read; JKS and PKCS12 are refused as for the keystore.", scope=_PER_BROKER
    )
    ssl_truststore_location = string(
        "ssl.truststore.location",
        None,
        "A PEM file with the CAs whose client certificates are accepted. It is read again when it changes.",
        scope=_PER_BROKER,
    )
    ssl_truststore_certificates = password(
        "ssl.truststore.certificates", None, "The CAs as PEM text, instead of a file.", scope=_PER_BROKER
    )
    ssl_client_auth = string(
        "ssl.client.auth",
        "none",
        "Whether clients need a certificate: required, requested or none. For a SASL_SSL listener it counts only with "
        "the prefix of the listener.",
        check=one_of("none", "requested", "required"),
        scope=_PER_BROKER,
    )
    ssl_enabled_protocols = names(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS that are spoken.",
        check=some_of("TLSv1.2", "TLSv1.3"),
        scope=_PER_BROKER,
    )
    ssl_cipher_suites = names(
        "ssl.cipher.suites",
        (),
        "Which ciphers may be used, by their IANA or OpenSSL names; empty leaves it to OpenSSL. Those of TLS 1.3 "
        "cannot be chosen one by one: if any is named, all are used.",
        scope=_PER_BROKER,
    )
    ssl_endpoint_identification_algorithm = string(
        "ssl.endpoint.identification.algorithm",
        "https",
        "https compares the name of another broker with its certificate before it is talked to; empty does not.",
        check=Check("https or empty", lambda text: text.lower() in ("https", "")),
        scope=_PER_BROKER,
    )
    ssl_principal_mapping_rules = string(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How the name in a client's certificate becomes a principal: RULE:PATTERN/REPLACEMENT/, with L or U behind it "
        "for small or capital letters, and DEFAULT, which takes the whole name.",
    )


class SaslSettings(Configuration):
    sasl_enabled_mechanisms = names(
        "sasl.enabled.mechanisms",
        ("GSSAPI",),
        "How clients of SASL listeners may log in. Kafka's default, GSSAPI, is not served: name at least one other.",
        check=Check(f"each one of {', '.join(MECHANISMS)}", _are_known),
        scope=_PER_BROKER,
    )
    sasl_jaas_config = password(
        "sasl.jaas.config",
        None,
        'For PLAIN, under listener.name.NAME.plain.: the users, as user_NAME="PASSWORD" options of PlainLoginModule. '
        "Its username and password are those with which brokers log in to each other.",
        scope=_PER_BROKER,
    )
    sasl_mechanism_inter_broker_protocol = string(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "How brokers of a cluster log in to each other, where they use a SASL listener: PLAIN, SCRAM-SHA-256 or "
        "SCRAM-SHA-512. As whom is in listener.name.NAME.MECHANISM.sasl.jaas.config. Kafka's default, GSSAPI, is not "
        "served, nor is OAUTHBEARER here: brokers fetch no tokens.",
        check=one_of("GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        scope=_PER_BROKER,
    )
    sasl_server_max_receive_size = integer(
        "sasl.server.max.receive.size",
        524_288,
        "The largest request of a client that has not logged in.",
        unit=Unit.BYTES,
        check=at_least(1024),
    )
    connections_max_reauth_ms = long(
        "connections.max.reauth.ms",
        0,
        "After so long a client of a SASL listener has to log in again; 0 asks only those whose token expires.",
        unit=Unit.MS,
        check=at_least(0),
    )
    connection_failed_authentication_delay_ms = integer(
        "connection.failed.authentication.delay.ms",
        100,
        "So long a client waits for the answer to a login that failed.",
        unit=Unit.MS,
        check=at_least(0),
    )
    ottla_login_timeout_ms = integer(
        "ottla.login.timeout.ms",
        30_000,
        "A client that has not finished its TLS handshake and login by then is disconnected.",
        unit=Unit.MS,
        check=at_least(1),
    )
    ottla_plain_without_tls = boolean(
        "ottla.plain.without.tls",
        False,
        "Whether PLAIN, which sends passwords as they are, may be used without TLS on an address that other machines "
        "reach.",
    )
    ottla_first_users = password(
        "ottla.first.users",
        None,
        "Users of SCRAM that are added at the start if there is none of that name: "
        "SCRAM-SHA-512=[name=NAME,password=PASSWORD], with semicolons between several.",
    )
    sasl_oauthbearer_jwks_endpoint_url = string(
        "sasl.oauthbearer.jwks.endpoint.url",
        None,
        "The keys with which tokens are signed: a JWKS, from a file: or https: URL.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        "How often they are read again.",
        unit=Unit.MS,
        check=at_least(1),
    )
    sasl_oauthbearer_expected_issuer = string(
        "sasl.oauthbearer.expected.issuer", None, "Who must have issued a token: its claim `iss`."
    )
    sasl_oauthbearer_expected_audience = names(
        "sasl.oauthbearer.expected.audience", (), "For whom a token must be: one of its claim `aud`."
    )
    sasl_oauthbearer_clock_skew_seconds = integer(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        "How far the clocks of issuer and broker may be apart.",
        check=at_least(0),
    )
    sasl_oauthbearer_sub_claim_name = string("sasl.oauthbearer.sub.claim.name", "sub", "The claim that names the user.")


class TokenSettings(Configuration):
    delegation_token_secret_key = password(
        "delegation.token.secret.key",
        None,
        "What proves delegation tokens: the same on all brokers of a cluster. Without it there are none.",
    )
    delegation_token_max_lifetime_ms = long(
        "delegation.token.max.lifetime.ms",
        604_800_000,
        "So long a token lasts at most, however often it is renewed.",
        unit=Unit.MS,
        check=at_least(1),
    )
    delegation_token_expiry_time_ms = long(
        "delegation.token.expiry.time.ms",
        86_400_000,
        "So long it lasts until it is renewed.",
        unit=Unit.MS,
        check=at_least(1),
    )
    delegation_token_expiry_check_interval_ms = long(
        "delegation.token.expiry.check.interval.ms",
        3_600_000,
        "How often tokens that have expired are removed. They are of no use before that.",
        unit=Unit.MS,
        check=at_least(1),
    )


class AccessSettings(Configuration):
    authorizer_class_name = string(
        "authorizer.class.name",
        "",
        "With one of Kafka's two names for it, StandardAuthorizer or AclAuthorizer (with their packages), ACLs decide "
        "who may do what.",
        check=Check(f"{AUTHORIZERS[0]}, or nothing", lambda text: not text or text in AUTHORIZERS),
    )
    super_users = string(
        "super.users", "", "Principals that may do everything, separated by semicolons: User:admin;User:other."
    )
    allow_everyone_if_no_acl_found = boolean(
        "allow.everyone.if.no.acl.found", False, "Whether everybody may do what they like to a resource without ACLs."
    )
    security_inter_broker_protocol = string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "Brokers use the listener of this name among themselves, where inter.broker.listener.name is not given. "
        "Without either they use the first one.",
        check=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )


class AuditSettings(Configuration):
    ottla_audit_log_file = string(
        "ottla.audit.log.file",
        "",
        "Where the audit trail is written, a JSON object in each line; without it the lines are in the broker's log.",
    )
    ottla_audit_log_max_bytes = long(
        "ottla.audit.log.max.bytes",
        104_857_600,
        "At this size the file is put aside, as FILE.1, and begun anew.",
        unit=Unit.BYTES,
        check=at_least(1024),
    )
    ottla_audit_log_backups = integer(
        "ottla.audit.log.backups", 10, "How many of them are kept; the oldest goes.", check=at_least(1)
    )


def super_users_of(text: str) -> tuple[str, ...]:
    return tuple(rule.strip() for rule in text.split(";") if rule.strip())
