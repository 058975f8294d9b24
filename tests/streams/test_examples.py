"""The examples give what their comments promise, in the test driver, from the files that `ottla streams run` takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import Application, TopologyTestDriver
from ottla.streams.loading import load_application

FOLDER = Path(__file__).parents[2] / "examples" / "streams"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "showing")


@pytest.fixture(autouse=True)
def _path_as_before() -> Iterator[None]:
    """A file that is loaded finds those beside it."""
    before = list(sys.path)
    yield
    sys.path[:] = before


def results(name: str, *topics: str) -> list[Any]:
    """Key and value of what was written for the rows of the example, topic by topic."""
    app = load_application(FOLDER / f"{name}.py")
    rows = sys.modules["ottla_pipeline_file"].ROWS
    with TopologyTestDriver(app.topology) as driver:
        for topic, key, value, timestamp in rows:
            driver.input_topic(topic).pipe(value, key=key, timestamp=timestamp)
        return [[(each.key, each.value) for each in driver.output_topic(topic).read_all()] for topic in topics]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_an_application_that_says_how_it_is_run(name: str) -> None:
    app = load_application(FOLDER / f"{name}.py")
    assert isinstance(app, Application)
    assert f"ottla streams run examples/streams/{name}.py" in (FOLDER / f"{name}.py").read_text()
    assert not any("-0000" in store for store in app.topology.stores), "a store that is not named"


def test_word_count() -> None:
    (counts,) = results("word_count", "word-counts")
    assert dict(counts) == {"to": 2, "be": 2, "or": 1, "not": 1, "that": 1, "is": 1, "the": 1, "question": 1}


def test_page_views_by_session_are_sent_once_when_a_session_is_over() -> None:
    (sessions,) = results("page_views_by_session", "sessions")
    assert sessions == [
        ("ada", {"pages": ["/", "/books"], "seconds": 600}),
        ("bob", {"pages": ["/"], "seconds": 0}),
        ("ada", {"pages": ["/"], "seconds": 0}),
    ]


def test_orders_have_the_customer_as_he_was_when_they_came() -> None:
    (orders,) = results("enriched_orders", "enriched-orders")
    found = [(key, order.customer, order.country, order.euro) for key, order in orders]
    assert found == [("c1", "Ada", "UK", 20.0), ("c2", "c2", "unknown", 5.0), ("c1", "Ada", "FR", 7.5)]


def test_the_largest_movers_of_a_minute_are_sorted_by_how_far_they_moved() -> None:
    (movers,) = results("largest_movers", "largest-movers")
    assert dict(movers)["0"] == [{"symbol": "OTTLA", "move": -10.0}, {"symbol": "ACME", "move": 1.0}]


def test_a_search_without_a_click_is_told_when_its_window_has_closed() -> None:
    (searches,) = results("searches_and_clicks", "searches-with-clicks")
    assert [(key, found["clicked"]) for key, found in searches] == [("ada", "/ottla"), ("bob", None)]


def test_a_card_in_three_countries_is_suspicious_and_one_that_rests_is_forgotten() -> None:
    (found,) = results("fraud_rule", "suspicions")
    assert found == [("card-1", {"rule": "countries", "countries": ["BR", "JP", "NL"]})]
    app = load_application(FOLDER / "fraud_rule.py")
    with TopologyTestDriver(app.topology) as driver:
        for topic, key, value, timestamp in sys.modules["ottla_pipeline_file"].ROWS:
            driver.input_topic(topic).pipe(value, key=key, timestamp=timestamp)
        assert [card for card, _ in driver.store("uses").all()] == ["card-2"]


def test_accounts_are_what_their_events_made_of_them() -> None:
    events, refusals, balances = results("event_sourcing", "account-events", "account-refusals", "account-balances")
    assert [event["event"] for _, event in events] == ["opened", "deposited", "withdrawn", "closed"]
    assert [refusal["refused"] for _, refusal in refusals] == ["there is too little", "there is no such account"]
    assert balances == [("ada", 0), ("ada", 50), ("ada", 0), ("ada", None)]
