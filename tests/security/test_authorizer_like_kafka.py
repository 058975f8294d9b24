"""Random rules and questions to Kafka's own StandardAuthorizer and to ours: the same answers."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from ottla.metadata.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer import Authorizer
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

pytestmark = pytest.mark.jvm

TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)
# Few and alike, so that rules and questions meet.
NAMES = ("a", "ab", "abc", "abd", "b", "ba", "kafka-cluster", "é", "hardcode", "hard")
PRINCIPALS = ("User:ada", "User:bob", "User:a", "User:*", "Group:ada")
HOSTS = ("10.0.0.1", "10.0.0.2")
OPERATIONS = tuple(one for one in Operation if one.value > 2)
QUESTIONS_OF_A_SET = 20


class Scene:
    """One set of rules, and what is asked of it; the lines are for Java."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.lines: list[str] = []
        self.ours: list[str] = []
        super_users = chance.sample(PRINCIPALS[:3], chance.choice((0, 0, 1)))
        allows = chance.random() < 0.3
        self._say("new", ";".join(super_users), str(allows).lower())
        acls = list(dict.fromkeys(self._acl(chance) for _ in range(chance.choice((0, 1, 3, 10, 30)))))
        for acl in acls:
            self._say(
                "acl",
                acl.resource_type.name,
                acl.resource_name,
                acl.pattern_type.name,
                acl.principal,
                acl.host,
                acl.operation.name,
                acl.permission.name,
            )
        authorizer = Authorizer(acls, super_users=super_users, allows_without_acl=allows)
        for _ in range(QUESTIONS_OF_A_SET):
            principal, host = chance.choice(PRINCIPALS[:3] + PRINCIPALS[4:]), chance.choice(HOSTS)
            operation, kind, name = chance.choice(OPERATIONS), chance.choice(TYPES), chance.choice(NAMES)
            self._say("may", principal, host, operation.name, kind.name, name)
            self._answer(authorizer.allows(principal, host, operation, kind, name))
        for _ in range(3):
            principal, host = chance.choice(PRINCIPALS[:3]), chance.choice(HOSTS)
            operation, kind = chance.choice(OPERATIONS), chance.choice(TYPES)
            self._say("any", principal, host, operation.name, kind.name)
            self._answer(authorizer.allows_on_any(principal, host, operation, kind))
        self._find(chance, acls)

    def _acl(self, chance: random.Random) -> Acl:
        pattern = chance.choice((PatternType.LITERAL, PatternType.PREFIXED))
        return Acl(
            chance.choice(TYPES),
            chance.choice((*NAMES, "*", "*")),
            pattern,
            chance.choice(PRINCIPALS),
            chance.choice((*HOSTS, "*", "*")),
            chance.choice((*OPERATIONS, Operation.ALL, Operation.ALL)),
            chance.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
        )

    def _find(self, chance: random.Random, acls: list[Acl]) -> None:
        wanted = AclFilter(
            chance.choice((ResourceType.ANY, *TYPES)),
            chance.choice((None, *NAMES, "*")),
            chance.choice((PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED)),
            chance.choice((None, None, *PRINCIPALS)),
            chance.choice((None, None, "*", *HOSTS)),
            chance.choice((Operation.ANY, Operation.ANY, Operation.ALL, Operation.READ)),
            chance.choice((Permission.ANY, Permission.ANY, Permission.ALLOW, Permission.DENY)),
        )
        self._say(
            "find",
            wanted.resource_type.name,
            wanted.resource_name or "-",
            wanted.pattern_type.name,
            wanted.principal or "-",
            wanted.host or "-",
            wanted.operation.name,
            wanted.permission.name,
        )
        found = (
            f"{acl.resource_type.name} {acl.resource_name} {acl.pattern_type.name} {acl.principal} {acl.host} "
            f"{acl.operation.name} {acl.permission.name}"
            for acl in acls
            if wanted.matches(acl)
        )
        self.ours.append("; ".join(sorted(found)))

    def _say(self, *fields: str) -> None:
        self.lines.append("\t".join(fields))

    def _answer(self, allowed: bool) -> None:
        self.ours.append("ALLOWED" if allowed else "DENIED")


def kafka_answers(lines: list[str]) -> list[str]:
    libs = require_kafka_libs()
    source = Path(__file__).parent / "KafkaAuthorizer.java"
    outcome = subprocess.run(
        [*quick_java(), "-Dfile.encoding=UTF-8", "-cp", class_path(libs), str(source)],
        input="\n".join(lines),
        capture_output=True,
        encoding="utf-8",
        timeout=1_200,
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout.splitlines()


@pytest.mark.parametrize(
    "scenes", [pytest.param(50, id="some"), pytest.param(10_000, id="many", marks=pytest.mark.slow)]
)
def test_our_answers_are_those_of_kafka(scenes: int) -> None:
    played = [Scene(seed) for seed in range(scenes)]
    theirs = kafka_answers([line for scene in played for line in scene.lines])
    at = 0
    for seed, scene in enumerate(played):
        answers, at = theirs[at : at + len(scene.ours)], at + len(scene.ours)
        assert answers == scene.ours, f"seed {seed}:\n" + "\n".join(scene.lines)
    assert at == len(theirs)
    assert {"ALLOWED", "DENIED"} <= set(theirs)
