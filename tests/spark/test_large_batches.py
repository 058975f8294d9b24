"""More than `spark.driver.maxResultSize` in one batch: it is spooled, and all of it is written once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from hashlib import sha512
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.spark import topics
from tests.spark.large_driver import PER_BATCH
from tests.spark.reading import committed_records
from tests.support.kafka_jars import REPO_ROOT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,  # the same way is taken within one process in test_write_stream.py
    pytest.mark.xdist_group("spark processes"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]
TIMES = 30


@pytest.mark.parametrize(
    ("small_batches", "first"),
    # A batch of 200 records of 2 KB comes as rows when such batches are known; 30 times as much does not.
    [(0, []), (3, ["spooled", "spooled", "here"])],
    ids=["from the start", "after small ones"],
)
def test_a_batch_larger_than_the_driver_may_hold_is_written_once(
    tmp_path: Path, small_batches: int, first: list[str]
) -> None:
    batches = small_batches + 2
    count = batches * PER_BATCH
    with Broker() as broker:
        servers = broker.bootstrap_servers
        source, target = topics.create(servers, 1), topics.create(servers, 2)
        topics.produce(servers, source, range(count))
        said = _run(bootstrap=servers, folder=str(tmp_path / "checkpoint"), source=source, target=target,
                    times=TIMES, **{"from": small_batches * PER_BATCH})  # fmt: skip
        assert said == [*first, "spooled", "spooled"]
        written = Counter(committed_records(servers, target))
    assert written == Counter(
        (b"k%d" % number, _text(number, copy))
        for number in range(count)
        for copy in range(1, 1 + (TIMES if number >= small_batches * PER_BATCH else 1))
    )


def _text(number: int, copy: int) -> bytes:
    return "".join(sha512(f"k{number} {copy} {n}".encode()).hexdigest() for n in range(1, 17)).encode()


def _run(**settings: object) -> list[str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(REPO_ROOT / "src"), str(REPO_ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [sys.executable, "-m", "tests.spark.large_driver", json.dumps(settings)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=REPO_ROOT, timeout=240)
    lines = ended.stdout.splitlines()
    assert lines[-1:] == ["done"], ended.stdout + ended.stderr
    return [line.removeprefix("came ") for line in lines if line.startswith("came ")]
