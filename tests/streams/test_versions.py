"""Runs of an application beside each other: their names, their topics, and which of them is in charge."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import Home, home_of
from ottla.streams import (
    Application,
    ErrorHandling,
    OnError,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    serdes,
)
from ottla.streams.engine.versions import Versions, read_versions, write_versions


def application() -> Application:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    words = builder.stream("words")
    windows = words.group_by_key().windowed_by(TimeWindows.of(10)).late_to("late")
    windows.count(store="counts").to_stream().to("counts")
    words.to("back")
    builder.stream("back").to(lambda key, value, metadata: f"for-{value}")
    handling = ErrorHandling(processing=OnError.DEAD_LETTER, dead_letter_topic="dead")
    return Application("app", builder, handling=handling)


def test_a_later_version_reads_the_same_and_writes_elsewhere() -> None:
    first, second = application(), application().version(2)
    assert first.version(1) is first
    assert (second.id, second.handling.dead_letter_topic) == ("app-v2", "dead.v2")
    name = second.topology.real_name
    assert [name("app-v2", topic) for topic in ("words", "counts", "late", "for-x")] == [
        "words",
        "counts.v2",
        "late.v2",
        "for-x.v2",
    ]
    # What it reads of its own results is of the same version.
    assert name("app-v2", "back") == "back.v2"
    assert first.topology.real_name("app", "counts") == "counts"


def test_records_of_a_later_version_go_to_its_topics() -> None:
    with TopologyTestDriver(application().version(2).topology) as driver:
        source = driver.input_topic("words")
        for time_ms in (0, 100, 5):
            source.pipe("x", key="k", timestamp=time_ms)
        found = {topic: len(driver.output_topic(topic)) for topic in ("counts.v2", "late.v2", "for-x.v2", "counts")}
    assert found == {"counts.v2": 2, "late.v2": 1, "for-x.v2": 3, "counts": 0}


def test_versions_are_noted_and_numbers_are_not_used_twice(tmp_path: Path) -> None:
    app = application()
    home = Home(tmp_path, "app")
    with home.locked():
        pass
    assert read_versions(home) == Versions("app", "app")
    second = read_versions(home).with_next(app.topology, app.handling, ["counts", "gone"])
    write_versions(home, second)
    assert read_versions(home) == second and second.waiting == "app-v2"
    assert second.topics["app-v2"] == {each: f"{each}.v2" for each in ("back", "counts", "dead", "late")}
    # What was written is deleted with it, not what others may write to.
    assert second.deletable("app") == ["counts", "gone"]
    assert second.deletable("app-v2") == ["back.v2", "counts.v2", "dead.v2", "late.v2"]
    # Once more goes on with the one that waits, unless it was given up.
    assert second.with_next(app.topology, app.handling, []) == second
    third = second.without("app-v2").with_next(app.topology, app.handling, [])
    assert third.waiting == "app-v3" and list(third.topics) == ["app", "app-v3"]


def test_the_name_of_an_application_means_the_run_in_charge(tmp_path: Path) -> None:
    for name in ("app", "app-v2"):
        with Home(tmp_path, name).locked():
            pass
    write_versions(Home(tmp_path, "app"), Versions("app", "app-v2", 2, {"app": {}, "app-v2": {}}))
    assert home_of(tmp_path, "app").name == "app-v2"
    assert home_of(tmp_path, "app", exactly=True).name == home_of(tmp_path, "app-v1").name == "app"
    with pytest.raises(OttlaError, match="no pipeline 'app-v3'"):
        home_of(tmp_path, "app-v3")
    Home(tmp_path, "app").versions.write_text("[]")
    with pytest.raises(OttlaError, match="not as Ottla wrote it"):
        home_of(tmp_path, "app")
