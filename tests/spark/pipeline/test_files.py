"""Pipelines from files: what is taken from them, and the sentence for each mistake. No Spark is started here."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.definition import Pipeline
from ottla.spark.pipeline.loading import load
from tests.support.kafka_jars import REPO_ROOT

PYTHON = """
from ottla.spark.pipeline import pipeline

@pipeline(to="out", key="country", every="5 seconds", conf={"spark.ui.enabled": False})
def orders_by_country(topics):
    return topics.stream("orders")
"""
SQL = """
-- What every country buys.
-- to: out
-- key: country, city
-- mode: update
-- dead-letters: bad-orders
-- stream: orders.eu as orders (customer string not null, euro decimal(9,2), at timestamp)
-- watermark: orders at 10 seconds
-- expect: orders euro >= 0 else below zero
-- option: maxOffsetsPerTrigger = 1000
-- table: customers (customer string, country string) by customer
-- conf: spark.ui.enabled = false
select country, -- a comment
  sum(euro) as euro from orders join customers using (customer) group by country;
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def complaint(folder: Path, name: str, text: str) -> str:
    with pytest.raises(OttlaError) as caught:
        load(written(folder, name, text))
    return str(caught.value)


def test_a_decorated_function_is_a_pipeline_called_like_it(tmp_path: Path) -> None:
    found = load(written(tmp_path, "any.py", PYTHON))
    assert (found.name, found.to, found.key, found.every) == ("orders-by-country", "out", ("country",), "5 seconds")
    assert found.conf == {"spark.ui.enabled": "false"}
    assert found.dead_letter_topic == "orders-by-country-dead-letters"


def test_a_sql_file_says_in_comments_what_it_reads_and_writes(tmp_path: Path) -> None:
    found = load(written(tmp_path, "orders_by_country.sql", SQL))
    assert (found.name, found.to, found.mode) == ("orders-by-country", "out", "update")
    assert found.key == ("country", "city")
    assert found.dead_letter_topic == "bad-orders"
    assert found.conf == {"spark.ui.enabled": "false"}
    assert not found.lineage
    assert load(written(tmp_path, "traced.sql", f"-- lineage: true\n{SQL}")).lineage
    with pytest.raises(OttlaError, match="line 1: write `-- lineage: true`"):
        load(written(tmp_path, "odd.sql", f"-- lineage: yes\n{SQL}"))


def test_a_sql_file_reads_streams_and_tables_and_runs_its_query(tmp_path: Path) -> None:
    topics = _RecordingTopics()
    load(written(tmp_path, "any.sql", SQL)).build(topics)  # type: ignore[arg-type]
    assert topics.calls == [
        ("table", "customers", "customer string, country string", "customer"),
        ("view", "customers"),
        (
            "stream",
            "orders.eu",
            "customer string not null, euro decimal(9,2), at timestamp",
            {"below zero": "euro >= 0"},
            {"maxOffsetsPerTrigger": "1000"},
        ),
        ("watermark", "at", "10 seconds"),
        ("view", "orders"),
        (
            "sql",
            "\n" * 12 + "select country, -- a comment\n  sum(euro) as euro from orders join customers using (customer)"
            " group by country",
        ),
    ]


class _RecordingTopics:
    """Stands for topics, frames and the session."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.spark = self

    def table(self, topic: str, schema: str, by: tuple[str, ...], key_schema: None = None) -> _RecordingTopics:
        self.calls.append(("table", topic, schema, *by))
        return self

    def stream(
        self, topic: str, schema: str, *, expect: object, key_schema: None = None, **options: str
    ) -> _RecordingTopics:
        self.calls.append(("stream", topic, schema, expect, options))
        return self

    def withWatermark(self, column: str, delay: str) -> _RecordingTopics:
        self.calls.append(("watermark", column, delay))
        return self

    def createOrReplaceTempView(self, name: str) -> None:
        self.calls.append(("view", name))

    def sql(self, query: str) -> None:
        self.calls.append(("sql", query))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.py", "x = 1", "has no pipeline: decorate a function"),
        ("a.py", "def broken(:", "line 1: SyntaxError: invalid syntax"),
        ("a.py", "\nx = 1 / 0", "line 2: ZeroDivisionError: division by zero."),
        ("a.py", "import sys\nsys.exit(0)", "line 2 ends the program instead of defining a pipeline"),
        # A ValueError before Python 3.11.4, a SyntaxError since.
        ("a.py", "x = 1\0", "Error: source code string cannot contain null bytes"),
        ("a.py", "import no_such_module_anywhere", "needs the module 'no_such_module_anywhere'"),
        ("a.py", PYTHON + PYTHON.replace("orders_by_country", "other"), "several pipelines (orders-by-country, other)"),
        ("a.py", PYTHON.replace('to="out"', 'name="no/slash"'), "'no/slash' cannot be the name of a pipeline"),
        ("a.py", PYTHON.replace('key="country"', 'mode="upsert"'), "has the mode 'upsert': choose one of append"),
        ("a.txt", "", "must end in .py or .sql"),
        ("a.sql", "-- stream: orders", "has no query below its comments"),
        ("a.sql", "select 1", "reads no stream"),
        ("a.sql", "-- steam: orders\nselect 1", "line 1: there is no setting 'steam'"),
        ("a.sql", "-- table: orders\nselect 1", "line 1: write a topic and its columns"),
        ("a.sql", "-- watermark: orders\nselect 1", "line 1: a watermark is a stream"),
        ("a.sql", "-- expect: orders euro > 0\nselect 1", "line 1: a rule is a stream"),
        ("a.sql", "-- option: x\nselect 1", "line 1: write `option: NAME = VALUE`"),
        ("a.sql", "-- to: a\n-- stream: x\n-- to: b\nselect 1", "line 3: `to` was said in line 1 already"),
        ("a.sql", "-- key: a\n-- key: b\nselect 1", "line 2: `key` was said in line 1 already"),
        ("a.sql", "-- stream: x\n-- table: y as x (a int)\nselect 1", "line 2: `view x` was said in line 1 already"),
        ("a.sql", "-- conf: a = 1\n-- conf: a = 2\nselect 1", "line 2: `conf a` was said in line 1 already"),
        ("a.sql", "-- stream: x\n-- watermark: y at 1 minute\nselect 1", "line 2: there is no stream 'y' here"),
        ("a.sql", "-- stream: x\n-- expect: y a > 0 else no\nselect 1", "line 2: there is no stream 'y' here"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, name: str, text: str, said: str) -> None:
    sentence = complaint(tmp_path, name, text)
    assert said in sentence
    assert "\n" not in sentence


def test_the_line_is_told_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "a.py", "\nx = 1 / 0")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OttlaError, match=r"a\.py, line 2: ZeroDivisionError"):
        load(Path("a.py"))


def test_modules_beside_the_file_are_loaded_anew_and_those_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a test, whose own module may lie in the same folder, while a broker imports modules in another thread."""

    class Importing(ModuleType):
        @property
        def __file__(self) -> str:  # type: ignore[override]
            monkeypatch.setitem(sys.modules, f"imported_meanwhile_{len(sys.modules)}", ModuleType("meanwhile"))
            return "/elsewhere/importing.py"

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "importing", Importing("importing"))
    mine = ModuleType("test_mine")
    mine.__file__ = str(tmp_path / "test_mine.py")
    monkeypatch.setitem(sys.modules, "test_mine", mine)
    file = written(tmp_path, "any.py", "from beside_any import target\n" + PYTHON.replace('to="out"', "to=target"))
    try:
        for target in ("one", "another"):
            written(tmp_path, "beside_any.py", f"target = {target!r}")
            importlib.invalidate_caches()
            shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
            assert load(file).to == target
        assert sys.modules["test_mine"] is mine
    finally:
        sys.modules.pop("beside_any", None)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match=r"there is no file .*gone\.py"):
        load(tmp_path / "gone.py")


def test_the_two_files_of_the_tutorial_do_not_write_to_one_topic(tmp_path: Path) -> None:
    """They are two pipelines: whoever runs both, as the tutorial shows them, must not find each order twice."""
    tutorial = (REPO_ROOT / "docs" / "tutorial-pipelines.md").read_text()
    files = []
    for kind, suffix in (("python", "py"), ("sql", "sql")):
        text = tutorial.partition(f"```{kind}\n")[2].partition("```")[0]
        files.append(load(written(tmp_path, f"sales.{suffix}", text)))
    python, sql = files
    assert python.name != sql.name
    assert python.to != sql.to
    created = re.search(r"ottla topic create (.*) -p 2", tutorial)
    assert created is not None and {python.to, sql.to} <= set(created[1].split())


def test_a_name_is_good_for_a_folder_and_a_transactional_id() -> None:
    for name in ("", ".", "..", "a/b", "a b", "ä", "-a", "a" * 201):
        with pytest.raises(OttlaError, match="cannot be the name"):
            Pipeline(name, build=lambda topics: None)
