"""A record is picked, and its story is found: all of it, nothing else, and whoever has read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.common import lineage
from ottla.common.errors import OttlaError
from ottla.tracing import Limits, Position, Raw, Trace, render_svg, trace
from tests.support.kafka_jars import REPO_ROOT
from tests.tracing.conftest import Sender

Topics = Callable[..., list[str]]
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


def _places(found: Trace) -> list[tuple[str, int]]:
    return [(hop.position.topic, hop.position.offset) for hop in found.hops]


def test_a_key_is_followed_over_topics_in_order_of_time(cluster: str, topics: Topics, send: Sender) -> None:
    orders, payments, shipping = topics("orders", "payments", "shipping")
    now_ms = time.time_ns() // 1_000_000
    for number in range(5):
        send(orders, "order", f"o-{number}", timestamp=now_ms + number)
    send(shipping, "shipped", "o-3", timestamp=now_ms + 9000)
    send(payments, "paid", "o-3", timestamp=now_ms + 1000)
    send(payments, "paid", "o-4", timestamp=now_ms + 1000)
    found = trace(cluster, (payments, 0, 0), topics=[orders, payments, shipping])
    assert _places(found) == [(orders, 3), (payments, 0), (shipping, 0)]
    assert [hop.latency_ms for hop in found.hops] == [None, 997, 8000]
    assert [hop.found_by for hop in found.hops] == ["key", "start", "key"]
    assert found.is_complete and found.records == 8
    assert all(topic.partitions == {0: (0, topic.records, topic.records)} for topic in found.searched)


def test_what_is_outside_of_the_window_is_neither_found_nor_read(cluster: str, topics: Topics, send: Sender) -> None:
    (orders,) = topics("orders")
    now_ms = time.time_ns() // 1_000_000
    for back_h in (30, 20, 10, 0):
        send(orders, "x", "k", timestamp=now_ms - back_h * 3_600_000)
    near = trace(cluster, (orders, 0, 1), topics=[orders])
    assert _places(near) == [(orders, 1)] and near.records == 1
    wide = trace(cluster, (orders, 0, 1), topics=[orders], window_ms=11 * 3_600_000)
    assert _places(wide) == [(orders, 0), (orders, 1), (orders, 2)]
    late = trace(cluster, (orders, 0, 1), topics=[orders], since_ms=now_ms - 1, until_ms=now_ms)
    assert _places(late) == [(orders, 1), (orders, 3)]


def test_a_trace_id_is_followed_where_keys_differ(cluster: str, topics: Topics, send: Sender) -> None:
    first, second = topics("a", "b")
    send(first, "1", "k", headers={"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01".encode()})
    send(second, "2", "k")
    send(second, "3", "other", headers={"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b8-01".encode()})
    send(second, "4", "k", headers={"traceparent": f"00-{TRACE_ID[::-1]}-00f067aa0ba902b8-01".encode()})
    found = trace(cluster, (first, 0, 0), topics=[first, second])
    assert _places(found) == [(first, 0), (second, 1)]
    by_key = trace(cluster, (first, 0, 0), topics=[first, second], by=["key"])
    assert _places(by_key) == [(first, 0), (second, 0), (second, 2)]


def test_the_same_value_may_be_a_key_here_and_a_number_in_json_there(
    cluster: str, topics: Topics, send: Sender
) -> None:
    orders, payments = topics("orders", "payments")
    send(orders, "x", "17")
    send(payments, json.dumps({"order": {"id": 17}}))
    send(payments, json.dumps({"order": {"id": 170}}))
    send(payments, json.dumps({"order": {"id": "17"}}).replace("17", "\\u0031\\u0037"))
    send(payments, json.dumps({"other": 17}))
    found = trace(cluster, (orders, 0, 0), topics=[orders, payments], by=["key", "json:order.id"])
    assert _places(found) == [(orders, 0), (payments, 0), (payments, 2)]
    backwards = trace(cluster, (payments, 0, 0), topics=[orders, payments], by=["key", "json:$.order.id"])
    assert _places(backwards) == _places(found)


def test_binary_keys_huge_values_and_html_are_what_they_are(cluster: str, topics: Topics, send: Sender) -> None:
    (odd,) = topics("odd")
    key = bytes(range(256))
    html = "<script>alert('1')</script>"
    send(odd, b"\xff" * 900_000, key)
    send(odd, html, key, headers={"<b>": html.encode()})
    send(odd, None, key)
    found = trace(cluster, (odd, 0, 1), topics=[odd])
    assert _places(found) == [(odd, 0), (odd, 1), (odd, 2)]
    data = json.loads(json.dumps(found.as_json()))
    assert data["hops"][0]["value"]["bytes"] == 900_000 and data["hops"][0]["value"]["is_cut"]
    assert "base64" in data["hops"][0]["key"] and data["hops"][2]["value"] is None
    assert len(json.dumps(data)) < 20_000
    drawn = render_svg(found, style=True)
    assert "<script" not in drawn
    assert len([part for part in ElementTree.fromstring(drawn).iter() if part.tag.endswith("circle")]) == 3


def test_a_record_without_anything_to_follow_says_what_to_do(cluster: str, topics: Topics, send: Sender) -> None:
    (plain,) = topics("plain")
    send(plain, "x")
    with pytest.raises(OttlaError, match="neither a key nor a traceparent"):
        trace(cluster, (plain, 0, 0), topics=[plain])
    with pytest.raises(OttlaError, match="has no header:x"):
        trace(cluster, (plain, 0, 0), topics=[plain], by=["header:x"])
    with pytest.raises(OttlaError, match="no record at offset 1"):
        trace(cluster, (plain, 0, 1), topics=[plain])
    with pytest.raises(OttlaError, match="no partition"):
        trace(cluster, (plain, 7, 1), topics=[plain])
    with pytest.raises(OttlaError, match="cannot be followed by 'colour'"):
        trace(cluster, (plain, 0, 0), by=["colour"])
    send(plain, "x", "k")
    with pytest.raises(OttlaError, match="ends before it begins"):
        trace(cluster, (plain, 0, 1), since_ms=2, until_ms=1)
    with pytest.raises(OttlaError, match="no topic matches"):
        trace(cluster, (plain, 0, 1), topics=["nothing-*"])


def test_aborted_and_open_records_are_told_as_such(cluster: str, topics: Topics, send: Sender) -> None:
    (orders,) = topics("orders")
    in_transaction = Sender(cluster, **{"transactional.id": orders})
    producer = in_transaction.producer
    producer.init_transactions(60)
    producer.begin_transaction()
    in_transaction(orders, "aborted", "k")
    producer.abort_transaction(60)
    producer.begin_transaction()
    in_transaction(orders, "committed", "k")
    producer.commit_transaction(60)
    send(orders, "plain", "k")
    producer.begin_transaction()
    in_transaction(orders, "open", "k")
    try:
        found = trace(cluster, (orders, 0, 0), topics=[orders])
        statuses = {hop.value.text: hop.status for hop in found.hops if hop.value is not None}
        assert statuses == {"aborted": "aborted", "committed": "committed", "plain": "committed", "open": "open"}
    finally:
        producer.abort_transaction(60)


def test_groups_have_read_a_record_or_not(cluster: str, topics: Topics, send: Sender) -> None:
    (orders,) = topics("orders", partitions=2)
    for number in range(5):
        send(orders, str(number), "k", partition=0)
    for group, partition, offset in (("past", 0, 5), ("just", 0, 3), ("before", 0, 2), ("elsewhere", 1, 0)):
        consumer = Consumer({"bootstrap.servers": cluster, "group.id": f"{group}-{orders}"})
        consumer.commit(offsets=[TopicPartition(orders, partition, offset)], asynchronous=False)
        consumer.close()
    found = trace(cluster, (orders, 0, 2), topics=[orders])
    hop = next(hop for hop in found.hops if hop.position.offset == 2)
    told = {group.group.removesuffix(f"-{orders}"): (group.verdict, group.lag_records) for group in hop.groups}
    assert told == {
        "past": ("read", 0),
        "just": ("read", 0),
        "before": ("not yet", 1),
        "elsewhere": ("nothing committed", 0),
    }


def test_lineage_leads_up_and_down_exactly(cluster: str, topics: Topics, send: Sender) -> None:
    """Keys are all the same: only what was made of the record counts, if that is what is asked for."""
    raw, clean, rich, total = topics("raw", "clean", "rich", "total")

    def header(topic: str, offset: int, query: str) -> dict[str, bytes]:
        return {lineage.HEADER: lineage.exact(lineage.Source(topic, 0, offset), query, 3)}

    for number in range(4):
        send(raw, f"raw {number}")
    for number in range(4):
        send(clean, f"clean {number}", headers=header(raw, 3 - number, "cleaning"))
    for number in range(4):
        send(rich, f"rich {number}", headers=header(clean, number, "enriching"))
    send(rich, "again", headers=header(clean, 1, "enriching"))
    of_batch = lineage.of_batch("summing", 7, "abc", [lineage.SourceRange(rich, 0, 0, 5)])
    send(total, "total", headers={lineage.HEADER: of_batch})
    found = trace(cluster, (clean, 0, 1), topics=[raw, clean, rich, total])
    assert _places(found) == [(raw, 2), (clean, 1), (rich, 1), (rich, 4)]
    by_place = dict(zip(_places(found), found.hops, strict=True))
    assert by_place[rich, 4].parent == (clean, 0, 1)
    assert (by_place[rich, 4].writer, by_place[rich, 4].batch) == ("enriching", 3)
    from_the_top = trace(cluster, (rich, 0, 4), topics=[raw, clean, rich, total])
    assert _places(from_the_top) == _places(found)
    assert _places(trace(cluster, (raw, 0, 2), topics=[raw, clean, rich, total], by=["lineage"])) == _places(found)
    of_total = trace(cluster, (total, 0, 0), topics=[total])
    assert of_total.hops[0].made_of == (f"{rich}/0/0-5",)


def test_what_a_view_hides_is_neither_shown_nor_followed(cluster: str, topics: Topics, send: Sender) -> None:
    orders, shown, hidden = topics("orders", "shown", "hidden")
    send(orders, "order", "o-1")
    for topic in (shown, hidden):
        send(topic, "made of it", "k", headers={lineage.HEADER: f"{orders}/0/0 enrich/3", "h": "o-1"})

    def view(position: Position, raw: Raw) -> Raw:
        return raw._replace(value=b"?", headers=()) if position.topic == hidden else raw

    names = [orders, shown, hidden]
    found = trace(cluster, (orders, 0, 0), by=["key", "header:h"], topics=names, view=view)
    assert _places(found) == [(orders, 0), (shown, 0)]
    assert sum(topic.found for topic in found.searched) == 2
    above = trace(cluster, (hidden, 0, 0), by=["lineage"], topics=names, view=view)
    assert _places(above) == [(hidden, 0)] and above.hops[0].parent is None
    assert above.hops[0].value is not None and above.hops[0].value.text == "?" and above.hops[0].headers == ()
    with pytest.raises(OttlaError, match="header:h is hidden from you"):
        trace(cluster, (hidden, 0, 0), by=["header:h"], topics=names, view=view)


def test_a_dead_letter_leads_to_the_record_that_it_was(cluster: str, topics: Topics, send: Sender) -> None:
    """By the headers that dead letters have without lineage; one that was only forwarded does not count."""
    raw, letters, fixed = topics("raw", "letters", "fixed")
    about = {"ottla.reason": b"no JSON", "ottla.pipeline": b"cleaning"}
    for number in range(3):
        send(raw, f"raw {number}")
    for topic, number in ((raw, 2), (raw, 1), (letters, 1)):
        place = {"ottla.source.topic": topic.encode(), "ottla.source.partition": b"0"}
        send(letters, "bad", headers={**about, **place, "ottla.source.offset": str(number).encode()})
    forwarded = [*about.items(), ("ottla.source.topic", raw.encode()), ("ottla.source.partition", b"0")]
    own = (lineage.HEADER, lineage.exact(lineage.Source(letters, 0, 1), "fixing"))
    send(fixed, "fixed", headers=[*forwarded, ("ottla.source.offset", b"1"), own])
    found = trace(cluster, (letters, 0, 1), topics=[raw, letters, fixed])
    by_place = dict(zip(_places(found), found.hops, strict=True))
    assert set(by_place) == {(raw, 1), (letters, 1), (letters, 2), (fixed, 0)}
    letter, last = by_place[letters, 1], by_place[fixed, 0]
    assert (letter.parent, letter.writer, letter.reason) == ((raw, 0, 1), "cleaning", "no JSON")
    assert (last.parent, last.writer) == ((letters, 0, 1), "fixing")


def test_a_search_is_bounded_and_says_how_far_it_came(cluster: str, topics: Topics, send: Sender) -> None:
    (big,) = topics("big", partitions=2)
    send(big, "first", "k", partition=0)
    for number in range(40):
        send.producer.produce(big, b"x" * 200_000, "k", partition=number % 2)
        send.producer.poll(0)
    send.producer.flush(60)
    by_bytes = trace(cluster, (big, 0, 0), topics=[big], limits=Limits(bytes_max=2_000_000))
    assert by_bytes.cut_short == "bytes" and not by_bytes.is_complete
    (topic,) = by_bytes.searched
    assert any(reached < end for _, reached, end in topic.partitions.values())
    by_hops = trace(cluster, (big, 0, 0), topics=[big], limits=Limits(hops_max=7))
    assert by_hops.cut_short == "hops" and len(by_hops.hops) <= 8
    by_time = trace(cluster, (big, 0, 0), topics=[big], limits=Limits(seconds_max=0.0))
    assert by_time.cut_short == "time" and len(by_time.hops) == 1
    seen: list[int] = []
    cancelled = trace(
        cluster,
        (big, 0, 0),
        topics=[big],
        is_cancelled=lambda: len(seen) > 2,
        on_progress=lambda b: seen.append(b.bytes),
    )
    assert cancelled.cut_short == "cancelled"
    assert len(trace(cluster, (big, 0, 0), topics=[big]).hops) == 41


_MEASURED = """
import resource, sys
from ottla.tracing import trace
found = trace(sys.argv[1], (sys.argv[2], 0, 0), topics=[sys.argv[2]])
print(found.records, len(found.hops), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_million_records_take_no_more_memory_than_a_few(cluster: str, topics: Topics, send: Sender) -> None:
    few, many = topics("few", "many")
    taken = []
    for topic, count in ((few, 1000), (many, 1_000_000)):
        send(topic, "first", "k")
        for number in range(count):
            while True:
                try:
                    send.producer.produce(topic, b"x" * 100, b"%d" % number)
                    break
                except BufferError:
                    send.producer.poll(0.1)
        assert send.producer.flush(120) == 0
        command = [sys.executable, "-c", _MEASURED, cluster, topic]
        environment = os.environ | {"PYTHONPATH": str(REPO_ROOT / "src")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
        records, hops, memory_kib = map(int, done.stdout.split())
        assert (records, hops) == (count + 1, 1)
        taken.append(memory_kib)
    assert taken[1] - taken[0] < 100 * 1024, taken
