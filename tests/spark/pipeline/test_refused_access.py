"""A user who may not do something is told what, in one sentence, and nothing is written; once granted, it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from ottla.spark.sink.marker import MARKER_TOPIC
from ottla.testing import Broker
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import Running, order
from tests.spark.pipeline.test_runner import copying, customers, eventually, send
from tests.support.kafka_jars import require_kafka_libs
from tests.support.process import free_ports
from tests.support.secured_kafka import AUTHORIZER, MODULES, USER, SecuredKafka

pytestmark = pytest.mark.slow

KAFKA = pytest.param("kafka", marks=pytest.mark.jvm)
TOPIC, GROUP, ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
NAME = "guarded"


class Guarded:
    """Topics of a cluster, and a user who may do what was granted."""

    def __init__(self, servers: str, settings: Mapping[str, str]) -> None:
        """`servers` let whoever comes do anything, `settings` are those of the user."""
        self.servers = servers
        self.client = {f"kafka.{name}": value for name, value in settings.items()}
        self.source, self.target = kafka.create(self.servers), kafka.create(self.servers)
        self._admin = AdminClient({"bootstrap.servers": self.servers})

    def grant(self, kind: ResourceType, name: str, *operations: AclOperation) -> None:
        rules = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", one, AclPermissionType.ALLOW)
            for one in operations
        ]
        for done in self._admin.create_acls(rules).values():
            done.result(20)

    def revoke(self, kind: ResourceType, name: str) -> None:
        every, allow = AclOperation.ANY, AclPermissionType.ALLOW
        rule = AclBindingFilter(kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", every, allow)
        for done in self._admin.delete_acls([rule]).values():
            done.result(20)

    def running(self, spark: Any, folder: Path, **more: Any) -> Running:
        made = copying(NAME, self.source, self.target)
        return Running(spark, made, self.servers, folder, client=self.client, **more)

    def may_run(self, spark: Any, folder: Path) -> bool:
        with self.running(spark, folder, once=True) as run:
            run.wait()
        return run.error is None

    def refused(self, spark: Any, folder: Path) -> str:
        """What a run says that cannot do all it has to."""
        with self.running(spark, folder, once=True) as run:
            run.wait()
        assert run.error is not None
        assert "restarting" not in run.heard.events
        assert customers(self.servers, self.target) == []
        return str(run.error)


@contextmanager
def guarded_ottla() -> Iterator[Guarded]:
    inside, outside = (f"127.0.0.1:{port}" for port in free_ports(2))
    properties = {
        "listeners": f"PLAINTEXT://{inside},SASL_PLAINTEXT://{outside}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{MODULES["PLAIN"]} required user_{USER}="secret";',
    }
    user = {
        "bootstrap.servers": outside,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": USER,
        "sasl.password": "secret",
    }
    with Broker(properties | AUTHORIZER):
        yield Guarded(inside, user)


@contextmanager
def guarded_kafka(folder: Path) -> Iterator[Guarded]:
    require_kafka_libs()
    with SecuredKafka(folder, AUTHORIZER) as cluster:
        yield Guarded(cluster.bootstrap, cluster.settings("SASL_PLAINTEXT", "PLAIN"))


@pytest.fixture(scope="module", params=["ottla", KAFKA])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    is_kafka = request.param == "kafka"
    with guarded_kafka(tmp_path_factory.mktemp("kafka")) if is_kafka else guarded_ottla() as made:
        yield made


def test_each_right_that_is_missing_is_one_sentence_and_with_all_of_them_it_runs(
    spark: Any, guarded: Guarded, tmp_path: Path
) -> None:
    read, write, create = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
    send(guarded.servers, guarded.source, [order("one", 1)])
    missing = "does not let this user"
    steps = [
        (f"{missing} use topic '{guarded.target}'", (TOPIC, guarded.target, write)),
        (f"the dead-letter topic '{NAME}-dead-letters' cannot be created", (TOPIC, f"{NAME}-dead-letters", create)),
        (f"'{MARKER_TOPIC}' cannot be created", (TOPIC, MARKER_TOPIC, create, read, write)),
        (f"{missing} use topic '{guarded.source}'", (TOPIC, guarded.source, read)),
        (f"{missing} use the transactional id '{NAME}'", (ID, NAME, write)),
        (f"{missing} use group '{NAME}'", (GROUP, NAME, read)),
    ]
    said = ""
    for sentence, grant in steps:
        # What was granted is known to a broker and its controller a moment later.
        before, tries = said, 0
        while said == before and tries < 10:
            said, tries = guarded.refused(spark, tmp_path), tries + 1
        assert sentence in said
        guarded.grant(*grant)
    eventually(lambda: guarded.may_run(spark, tmp_path))
    with guarded.running(spark, tmp_path) as run:
        eventually(lambda: customers(guarded.servers, guarded.target) == ["one"])
        guarded.revoke(TOPIC, guarded.target)
        send(guarded.servers, guarded.source, [order("two", 1)])
        run.wait()
    assert f"{missing} use topic '{guarded.target}'" in str(run.error)
    guarded.grant(TOPIC, guarded.target, write)
    eventually(lambda: guarded.may_run(spark, tmp_path))
    assert customers(guarded.servers, guarded.target) == ["one", "two"]
