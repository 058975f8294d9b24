"""The text of each file that `ottla security` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ottla.cli.security.plan import ADMIN, BROKER_USER, BrokerPlan, ClientPlan, Plan, is_loopback
from ottla.common.config.listeners import listener_text

_SCRAM = "SCRAM-SHA-512"
_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_MADE = "Made by `ottla security`"
# A broker's certificate has OU=brokers, which no client's has. Its name is that of a host: one with an escaped comma in
# it would end as a broker's does.
_PRINCIPALS = f"RULE:^CN=[A-Za-z0-9.:-]+,OU=brokers$/{BROKER_USER}/,RULE:^CN=([^,]+)$/$1/"


def server_properties(plan: Plan, broker: BrokerPlan, *, folder: Path, ca: Path) -> str:
    listeners = {"SASL_SSL": plan.port, "SSL": plan.port + 1} | ({"BROKERS": plan.port + 2} if plan.is_cluster else {})
    host = broker.hosts[0]
    bound = host if is_loopback(host) else "0.0.0.0"
    lines = [
        f"# {_MADE}. There are secrets in it: keep it readable for the broker alone.",
        f"node.id={broker.id}",
        "# SASL_SSL is for users with a password, SSL for clients with a certificate.",
        "listeners=" + ",".join(listener_text(name, bound, port) for name, port in listeners.items()),
        "advertised.listeners=" + ",".join(listener_text(name, host, port) for name, port in listeners.items()),
        f"log.dirs={folder / 'data'}",
        "",
        "# Put a new file in the place of the old one to renew it; no restart is needed.",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={folder / 'broker.pem'}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={ca}",
        "ssl.client.auth=required",
        f"ssl.principal.mapping.rules={_PRINCIPALS}",
        "",
        f"sasl.enabled.mechanisms={_SCRAM}",
        "# Added at the first start, so that somebody can log in; what was changed since stays.",
        f"ottla.first.users={plan.first_users}",
        "",
        "# Nobody else may do anything until an ACL allows it: `ottla acl add`.",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        f"super.users=User:{ADMIN};User:{BROKER_USER}",
    ]
    if plan.is_cluster:
        lines += [
            "",
            "# Brokers show each other their certificates. Let nobody else reach this listener.",
            "listener.security.protocol.map=SASL_SSL:SASL_SSL,SSL:SSL,BROKERS:SSL",
            "inter.broker.listener.name=BROKERS",
            f"zookeeper.connect={plan.zookeeper}",
            f"ottla.zookeeper.auth=digest:{plan.zookeeper_login}",
            "zookeeper.set.acl=true",
            "default.replication.factor=3",
            "min.insync.replicas=2",
        ]
    return "\n".join(lines) + "\n"


def java_settings(plan: Plan, client: ClientPlan, *, identity: Path, ca: Path) -> dict[str, str]:
    """By the names of Java's clients."""
    common = {"bootstrap.servers": plan.bootstrap(client)}
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca)}
    if client.password is None:
        own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(identity)}
        return {**common, "security.protocol": "SSL", **trust, **own}
    return {
        **common,
        "security.protocol": "SASL_SSL",
        **trust,
        "sasl.mechanism": _SCRAM,
        "sasl.jaas.config": _jaas(client),
    }


def librdkafka_settings(plan: Plan, client: ClientPlan, *, identity: Path, ca: Path) -> dict[str, str]:
    common = {"bootstrap.servers": plan.bootstrap(client)}
    if client.password is None:
        own = {"ssl.certificate.location": str(identity), "ssl.key.location": str(identity)}
        return {**common, "security.protocol": "SSL", "ssl.ca.location": str(ca), **own}
    login = {"sasl.mechanism": _SCRAM, "sasl.username": client.user, "sasl.password": client.password}
    return {**common, "security.protocol": "SASL_SSL", "ssl.ca.location": str(ca), **login}


def spark_options(plan: Plan, client: ClientPlan, *, identity_pem: str, ca_pem: str) -> dict[str, str]:
    """Certificates are in it as text: executors on other machines need no files."""
    common = {"kafka.bootstrap.servers": plan.bootstrap(client)}
    trust = {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.certificates": ca_pem}
    if client.password is None:
        key, begin, chain = identity_pem.partition("-----BEGIN CERTIFICATE-----")
        own = {
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.key": key,
            "kafka.ssl.keystore.certificate.chain": begin + chain,
        }
        return {**common, "kafka.security.protocol": "SSL", **trust, **own}
    login = {"kafka.sasl.mechanism": _SCRAM, "kafka.sasl.jaas.config": _jaas(client)}
    return {**common, "kafka.security.protocol": "SASL_SSL", **trust, **login}


def _jaas(client: ClientPlan) -> str:
    assert client.password is not None
    return f'{_LOGIN_MODULE} required username="{client.user}" password="{client.password}";'


def properties_text(settings: Mapping[str, str], what: str) -> str:
    return f"# {_MADE}: {what}\n" + "".join(f"{name}={value}\n" for name, value in settings.items())


def python_text(settings: Mapping[str, str]) -> str:
    lines = "".join(f"    {json.dumps(name)}: {json.dumps(value)},\n" for name, value in settings.items())
    return (
        f'"""{_MADE}: settings for confluent-kafka.\n\n'
        "    from settings import SETTINGS\n    producer = confluent_kafka.Producer(SETTINGS)\n"
        f'"""\n\nSETTINGS = {{\n{lines}}}\n'
    )


def profiles_text(profiles: Mapping[str, Mapping[str, str]]) -> str:
    """TOML; a text of JSON is one of TOML too."""
    sections = [
        f"[profiles.{json.dumps(name)}]\n"
        + "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in settings.items())
        for name, settings in profiles.items()
    ]
    return f"# {_MADE}: ottla --profile NAME, with OTTLA_PROFILES set to this file.\n\n" + "\n".join(sections)
