"""TLS and SASL by both families of names, what is refused and in which words, and no secret in any of them."""

from __future__ import annotations

import pickle

import pytest

from ottla.client.access.jaas import parse_jaas
from ottla.client.access.security import PLAIN_TEXT, Sasl, Security, Tls
from ottla.client.access.security_settings import parse_security
from ottla.common.errors import OttlaError

SECRET = "s3cr3t"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nTUlJRQ==\n-----END PRIVATE KEY-----\n"
SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
SSL = {"security.protocol": "SSL"}


def jaas(text: str = f'{PLAIN_MODULE} required username="ada" password="{SECRET}";') -> dict[str, str]:
    return {**SASL, "sasl.jaas.config": text}


def test_without_a_protocol_there_is_neither() -> None:
    assert parse_security({"group.id": "g", "sasl.username": "ada"}) == PLAIN_TEXT


@pytest.mark.parametrize(
    ("protocol", "has_tls", "has_sasl"),
    [("plaintext", False, False), ("ssl", True, False), ("Sasl_Plaintext", False, True), (" SASL_SSL ", True, True)],
)
def test_protocols_in_any_case(protocol: str, has_tls: bool, has_sasl: bool) -> None:
    found = parse_security({**jaas(), "security.protocol": protocol})
    assert (found.tls is not None, found.sasl is not None) == (has_tls, has_sasl)
    assert found.protocol == protocol.strip().upper()


def test_both_families_of_names_say_the_same() -> None:
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM_MODULE} required username="ada" password="{SECRET}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/etc/me.pem",
        "ssl.key.password": SECRET,
        "ssl.endpoint.identification.algorithm": "",
    }
    librdkafka = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "ada",
        "sasl.password": SECRET,
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.certificate.location": "/etc/me.pem",
        "ssl.key.password": SECRET,
        "ssl.endpoint.identification.algorithm": "none",
    }
    tls = Tls("/etc/ca.pem", certificate_location="/etc/me.pem", key_password=SECRET, checks_host_name=False)
    assert parse_security(java) == Security(tls, Sasl("SCRAM-SHA-512", "ada", SECRET))
    assert parse_security(librdkafka) == parse_security(java)


@pytest.mark.parametrize("written", [CERTIFICATE, CERTIFICATE.replace("\n", "\\n"), CERTIFICATE.replace("\n", " ")])
def test_pem_in_a_setting_is_understood_however_its_lines_end(written: str) -> None:
    java = {"ssl.truststore.certificates": written, "ssl.keystore.certificate.chain": written, "ssl.keystore.key": KEY}
    rdkafka = {"ssl.ca.pem": written, "ssl.certificate.pem": written, "ssl.key.pem": KEY}
    for given in (java, rdkafka):
        tls = parse_security({**SSL, **given}).tls
        assert tls is not None
        assert tls.ca_pem == CERTIFICATE
        assert tls.identity_pem == KEY + CERTIFICATE


def test_verification_and_versions_can_be_chosen() -> None:
    trusting = parse_security({**SSL, "enable.ssl.certificate.verification": "False"}).tls
    assert trusting is not None
    assert not trusting.checks_certificate and not trusting.checks_host_name
    newest = parse_security({**SSL, "ssl.enabled.protocols": "TLSv1.3"}).tls
    assert newest is not None
    assert newest.versions == ("TLSv1.3",)
    system = parse_security({**SSL, "ssl.ca.location": "probe", "ssl.enabled.protocols": "TLSv1.1,TLSv1.2,TLSv1.3"})
    assert system.tls == Tls()


def test_settings_of_java_and_of_other_mechanisms_are_accepted() -> None:
    more = {"ssl.protocol": "TLSv1.3", "sasl.kerberos.service.name": "kafka", "ssl.truststore.password": SECRET}
    assert parse_security({**jaas(), **more}) == parse_security(jaas())


def test_secrets_stay_out_of_texts_and_go_to_executors() -> None:
    given = {**jaas(), "ssl.keystore.certificate.chain": CERTIFICATE, "ssl.keystore.key": KEY}
    security = parse_security({**given, "ssl.key.password": SECRET})
    assert SECRET not in repr(security)
    assert "PRIVATE KEY" not in repr(security)
    assert "ada" in repr(security)
    copy = pickle.loads(pickle.dumps(security))
    assert copy == security
    assert hash(copy) == hash(security)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "GSSAPI is not supported: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are."),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism OAUTHBEARER is not supported"),
        ({**SASL, "sasl.mechanism": "AWS_MSK_IAM"}, "sasl.mechanism AWS_MSK_IAM is not supported"),
        (SASL, "SASL needs a user and a password"),
        ({**SASL, "sasl.username": "ada"}, "SASL needs a user and a password"),
        ({**jaas(), "sasl.username": "ada"}, "the user is named twice"),
        ({**SASL, "sasl.username": "a\0da", "sasl.password": SECRET}, "null character"),
        (jaas(f'{PLAIN_MODULE} required username="ada" password="{SECRET}"'), "does not end with a semicolon"),
        (jaas(f'{PLAIN_MODULE} required username="ada" password="{SECRET};'), "cannot be read at character"),
        (jaas(f'{PLAIN_MODULE} username="ada" password="{SECRET}";'), "a login module and `required`"),
        (jaas(f'{PLAIN_MODULE} required username password="{SECRET}";'), "an option without a value"),
        (jaas(f'{PLAIN_MODULE} required password="{SECRET}";'), "no username or no password"),
        (jaas(f"{PLAIN_MODULE} required a=b; {PLAIN_MODULE} required;"), "more than one login module"),
        (jaas(f'{SCRAM_MODULE} required username="ada" password="{SECRET}";'), "has ScramLoginModule, but"),
        (jaas(f"{PLAIN_MODULE} required tokenauth=true username=a password=b;"), "delegation tokens"),
        ({**SASL, "sasl.mechansim": "PLAIN"}, "did you mean sasl.mechanism?"),
        ({**SASL, "sasl.login.class": "org.example.Login"}, "it names Java code"),
        ({**SSL, "ssl.xyzzy.qux": "blue"}, "there is no setting ssl.xyzzy.qux: Kafka's clients know no such setting."),
        ({**SSL, "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "choose ciphers on the brokers"),
        ({**SSL, "ssl.enabled.protocols": "TLSv1"}, "has none of TLSv1.2 and TLSv1.3"),
        ({**SSL, "ssl.endpoint.identification.algorithm": "ldap"}, "is https, or empty"),
        ({**SSL, "enable.ssl.certificate.verification": "perhaps"}, "is true or false, not 'perhaps'"),
        ({**SSL, "ssl.truststore.certificates": "/etc/ca.pem"}, "wants the text of a PEM file"),
        ({**SSL, "ssl.ca.location": "/ca.pem", "ssl.ca.pem": CERTIFICATE}, "whom to trust is said twice"),
        ({**SSL, "ssl.keystore.key": CERTIFICATE}, "with -----BEGIN PRIVATE KEY----- in it"),
        ({**SSL, "ssl.keystore.key": KEY}, "there is only the key of this client"),
        ({**SSL, "ssl.certificate.pem": CERTIFICATE}, "there is only the certificate of this client"),
        ({**SSL, "ssl.key.location": "/etc/key.pem"}, "without ssl.certificate.location"),
        (
            {**SSL, "ssl.truststore.location": "/etc/my trust.jks", "ssl.truststore.password": SECRET},
            "`keytool -list -rfc -storetype JKS -keystore '/etc/my trust.jks' > '/etc/my trust.jks.pem'`",
        ),
        ({**SSL, "ssl.keystore.location": "/etc/me.p12"}, "`openssl pkcs12 -in /etc/me.p12 -out /etc/me.p12.pem`"),
        (
            {**SSL, "ssl.keystore.location": "/etc/me.jks", "ssl.keystore.password": SECRET},
            "-deststoretype PKCS12 && openssl pkcs12 -in /etc/me.jks.p12 -out /etc/me.jks.pem`",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(given: dict[str, str], words: str) -> None:
    with pytest.raises(OttlaError) as refused:
        parse_security(given)
    said = str(refused.value)
    assert words in said
    assert "\n" not in said
    assert SECRET not in said


def test_a_login_configuration_is_read_as_kafka_reads_it() -> None:
    text = f"""
        {SCRAM_MODULE} /* of the
        broker */ REQUIRED // a comment
        username = 'a"da' password="qu\\"ote; = \\\\ \\u \\101\\tä" serviceName=kafka-1.x;
    """
    assert parse_jaas(text) == (
        "ScramLoginModule",
        {"username": 'a"da', "password": 'qu"ote; = \\ u A\tä', "serviceName": "kafka-1.x"},
    )
    shaded = parse_jaas('kafkashaded.org.apache.kafka.PlainLoginModule required username="" password="";')
    assert shaded == ("PlainLoginModule", {"username": "", "password": ""})
