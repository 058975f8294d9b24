"""What people do with a console every day, in a real browser: on one node, on a cluster, on Apache Kafka."""

from __future__ import annotations

import json

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.console.browser import Browser

SCRIPT = "<script>alert(1)</script>"


def daily_work(browser: Browser, bootstrap: str, topic: str, group: str) -> None:
    """Create, produce, find, reset offsets, watch the lag fall. `topic` and `group` are new."""
    browser.open("/topics?new=1")
    browser.fill("input[name=name]", topic)
    browser.fill("input[name=partitions]", "1")
    browser.click("#new button.primary")
    browser.says(f"Topic {topic} is there.")
    for number in range(3):
        browser.open(f"/topics/{topic}/produce")
        browser.fill("input[name=key]", f"user-{number}")
        browser.fill("textarea[name=value]", json.dumps({"amount": number * 100, "note": SCRIPT}))
        browser.click("form.form button.primary")
        browser.says(f"at offset {number}")
    browser.open(f"/topics/{topic}/records")
    browser.fill("input[name=where]", "value.amount > 150")
    browser.click("#search button.primary")
    browser.until(lambda: browser.one("#results").get_attribute("data-done"))
    assert "1 found" in browser.text and "searched 3 records" in browser.text
    assert "where=value.amount" in browser.driver.current_url and "text=" not in browser.driver.current_url
    assert SCRIPT in browser.text
    commit(bootstrap, group, topic, 0)
    browser.open(f"/groups/{group}/offsets")
    browser.driver.execute_script("document.querySelector('select[name=to]').value = 'end'")
    browser.click("form.form button.primary")
    browser.says("The plan")
    browser.click("#plan button.primary")
    browser.says(f"Group {group} is moved in 1 partition.")
    assert browser.one("#stats dd").text == "0"
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(7):
        producer.produce(topic, b"x")
    assert producer.flush(60) == 0
    browser.until(lambda: browser.one("#stats dd").text == "7")  # the open page follows by itself
    commit(bootstrap, group, topic, 10)
    browser.until(lambda: browser.one("#stats dd").text == "0")
    assert browser.complaints() == []


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()
