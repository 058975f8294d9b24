"""Kafka Streams (Java, exactly_once_v2) with a state store and a repartition topic: each word is counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.interop.products.conftest import Reader, send
from tests.interop.products.program import Program
from tests.support.brokers import OttlaProcess

pytestmark = [pytest.mark.jvm, pytest.mark.xdist_group("foreign")]
WORDS = ["one", "two", "three", "four", "five", "six", "seven"]
PATIENCE_S = 200.0


def lines(count: int) -> list[str]:
    return [f"{WORDS[number % 7]} {WORDS[number % 3]}" for number in range(count)]


def counts(reader: Reader) -> dict[str, list[int]]:
    by_word: dict[str, list[int]] = defaultdict(list)
    for word, count in reader.look():
        assert word is not None
        by_word[word].append(int(count))
    return by_word


def one_to_each(sent: list[str]) -> dict[str, list[int]]:
    """What a reader of the counts sees if nothing was lost and nothing was done twice."""
    totals = Counter(word for line in sent for word in line.split())
    return {word: list(range(1, total + 1)) for word, total in totals.items()}


@pytest.fixture
def app(broker: OttlaProcess, tmp_path: Path) -> Program:
    create_topic(broker, "lines", 2)
    create_topic(broker, "counts")
    source = Path(__file__).with_name("WordCount.java")
    return Program(source, [broker.bootstrap, "words", "lines", "counts", tmp_path / "state"], tmp_path / "streams.log")


def test_words_are_counted_exactly_once(broker: OttlaProcess, app: Program) -> None:
    sent = lines(300)
    send(broker, "lines", sent)
    reader = Reader(broker, "counts")
    with app:
        eventually(lambda: (app.check(), counts(reader))[1], lambda seen: seen == one_to_each(sent), PATIENCE_S)


@pytest.mark.slow
def test_words_are_counted_exactly_once_over_kills_of_the_application_and_of_the_broker(
    broker: OttlaProcess, app: Program
) -> None:
    reader, sent = Reader(broker, "counts"), []
    with app:
        for number in range(1, 7):
            piece = lines(2000)
            send(broker, "lines", piece)
            sent += piece
            # Some of it is on its way when the next one dies.
            before = 4000 * (number - 1)
            eventually(lambda: (app.check(), len(reader.look()))[1], lambda seen: seen > before, PATIENCE_S)  # noqa: B023
            if number % 2:
                app.kill()
                app.start()
            elif number < 6:
                broker.restart(kill=True)
        eventually(lambda: (app.check(), counts(reader))[1], lambda seen: seen == one_to_each(sent), PATIENCE_S)
