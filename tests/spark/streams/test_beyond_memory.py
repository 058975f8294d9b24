"""State that grows beyond what a worker may have ends the application with one sentence, and is not lost by it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.cli.command import Cli
from tests.spark import topics as kafka
from tests.spark.streams.test_application import by_key, produce

# Each record makes 8 MB of state; nothing else of it is written than that it was there.
APP = """
from ottla.streams import Application, Processor, Record, StreamsBuilder, key_value_store, serdes


class Hoards(Processor):
    def process(self, record):
        self.context.store("hoard").put(record.value, bytes(8_000_000))
        self.context.forward(record)


builder = StreamsBuilder(key=serdes.string, value=serdes.string)
builder.add_store(key_value_store("hoard", key=serdes.string, value=serdes.raw))
builder.stream({source!r}).process(Hoards, stores=["hoard"]).to({target!r})
app = Application("hoards", builder)
"""
LIMIT = ("--conf", "spark.executor.pyspark.memory=3g")
FEW, MANY = 3, 600


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_what_does_not_fit_is_said_in_a_sentence_and_what_was_committed_stays(tmp_path: Path) -> None:
    with Broker({"message.max.bytes": "20000000"}) as broker:
        servers = broker.bootstrap_servers
        source, target = kafka.create(servers), kafka.create(servers)
        file = tmp_path / "app.py"
        file.write_text(APP.format(source=source, target=target))
        cli = Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / "home")})
        run = ("streams", "run", file, "--once", "--master", "local[1]", *LIMIT)
        produce(servers, [(source, "k", str(number), 5) for number in range(FEW)], {"k": 0})
        done = cli(*run, timeout_s=400)
        assert done.status == 0, done
        produce(servers, [(source, "k", str(number), 5) for number in range(FEW, MANY)], {"k": 0})
        failed = cli(*run, timeout_s=400)
        written = [value for value, _ in by_key(servers, target)["k"]]
    assert failed.status == 1, failed
    sentence = failed.err.strip().splitlines()[-1]
    told = "the state of task 0_0 of application 'hoards' does not fit into the memory of its Python worker"
    assert told in sentence and "Use more partitions" in sentence, failed.err
    assert written == [str(number) for number in range(FEW)]
