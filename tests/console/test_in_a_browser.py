"""The console in a real browser: every page, the daily work, and what people see when something is refused."""

from __future__ import annotations

import json
import multiprocessing  # noqa: F401  not a quick test: it starts a browser
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.common.passwords import hashed
from ottla.console.web.navigation import NAVIGATION
from ottla.testing import Broker, Connect
from tests.console.browser import Browser, axe_source, browsing, require_chromium
from tests.console.daily_work import daily_work
from tests.console.running import RunningConsole

pytestmark = pytest.mark.xdist_group("browser")
PAGES = [entry.path for _, entries in NAVIGATION for entry in entries]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"num.partitions": "2", "ottla.metrics.listen": "127.0.0.1:0"}) as running:
        yield running


@pytest.fixture(scope="module")
def console(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    """With all that stands beside brokers, so that no page is empty."""
    folder = tmp_path_factory.mktemp("console")
    (folder / "files").mkdir()
    (folder / "files" / "words.py").write_text("from ottla.streams import Application")
    (folder / "orders.toml").write_text(
        'name = "orders"\n[[step]]\nname = "order"\ntopic = "orders"\nid = "json:n"\n'
        '[[step]]\nname = "payment"\ntopic = "orders"\nid = "json:paid"\nwithin = "1ms"\n'
    )
    metrics = broker.server.metrics
    assert metrics is not None
    with Connect(broker.bootstrap_servers, spark=object()) as worker:
        config = {"connector.class": "FileStreamSource", "topic": "orders", "db.password": "x"}
        wanted = {"name": "files", "config": config, "initial_state": "STOPPED"}
        assert worker.ask("POST", "/connectors", wanted)[0] == 201
        with RunningConsole(
            broker.bootstrap_servers,
            connect=(worker.url,),
            metrics=(metrics.url,),
            processes=(folder / "orders.toml",),
            pipelines=folder / "data",
            pipeline_files=folder / "files",
        ) as running:
            yield running


@pytest.fixture(scope="module")
def browser(broker: Broker, console: RunningConsole) -> Iterator[Browser]:
    require_chromium()
    broker.create_topic("orders", 2)
    values = [json.dumps({"n": n, "total": n * 1.5}).encode() for n in range(500)]
    for partition in range(2):
        broker.produce("orders", *values[partition::2], key=b"k", headers={"region": "eu"}, partition=partition)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 0), TopicPartition("orders", 1, 0)], asynchronous=False)
    consumer.close()
    with browsing(console.url) as running:
        yield running


def all_pages() -> list[str]:
    return [
        *PAGES,
        "/topics?new=1",
        "/topics/orders",
        "/topics/orders/records?limit=50",
        "/topics/orders/settings",
        "/topics/orders/produce",
        "/topics/orders/manage",
        "/topics/orders/records/0/3",
        "/trace?topic=orders&partition=0&offset=3",
        "/groups/billing",
        "/groups/billing/offsets?to=end",
        "/brokers/1",
        "/processes/orders",
        "/connectors/files",
        "/connectors/files/edit",
        "/connectors-new",
        "/connectors-new?plugin=FileStreamSource",
    ]


def test_every_page_opens_in_the_browser_without_a_complaint_and_fits_a_phone(browser: Browser) -> None:
    for width in (1280, 390):
        browser.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False},
        )
        for path in all_pages():
            browser.open(path)
            browser.one("main h1")
            wide = browser.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{path} is {wide} px too wide at {width}"
            assert browser.complaints() == [], path
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


FEW = ["/", "/topics", "/topics/orders/records?limit=50", "/groups/billing/offsets?to=end"]


@pytest.mark.parametrize("pages", [FEW, pytest.param(all_pages(), marks=pytest.mark.slow)], ids=["few", "all"])
def test_pages_are_accessible_in_dark_and_light(browser: Browser, pages: list[str]) -> None:
    source = axe_source()
    for theme in ("light", "dark"):
        browser.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        )
        for path in pages:
            browser.open(path)
            browser.one("main h1")
            # Through the driver: the page itself runs no script but its own.
            browser.driver.execute_script(source)
            answer = browser.driver.execute_async_script(
                "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then("
                "r => done(r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html).join(' '))))"
            )
            assert answer == [], (theme, path, answer)


def test_create_produce_find_reset_and_watch_the_lag_fall(browser: Browser, broker: Broker) -> None:
    daily_work(browser, broker.bootstrap_servers, "payments", "accounting")


def test_a_record_leads_to_its_path_and_to_who_has_read_it(browser: Browser) -> None:
    browser.open("/topics/orders/records/1/3")
    browser.click("a[href^='/trace?']")
    browser.until(lambda: browser.one("#tracing").get_attribute("data-done") == "done")
    assert browser.all("svg.ottla-trace circle.start") and browser.all("#readers a[href='/groups/billing']")
    browser.click("#hops a[href='/topics/orders/records/1/4']")
    browser.until(lambda: browser.driver.current_url.endswith("/topics/orders/records/1/4"))
    browser.open("/trace?topic=orders&offset=99999")
    browser.says("no record at offset 99999")
    assert browser.complaints() == []


def test_a_connector_is_made_with_its_mistakes_at_the_fields_and_deleted(browser: Browser) -> None:
    browser.open("/connectors")
    browser.click("a[href='/connectors-new']")
    browser.click("a[href*='FileStreamSourceConnector']")
    browser.fill("#new-name", "lines")
    browser.fill("input[name='setting:tasks.max']", "many")
    browser.click("#connector-form button.primary")
    browser.says("Not a number of type INT")
    assert len(browser.all(".field.wrong")) == 2 and browser.one("#new-name").get_attribute("value") == "lines"
    browser.fill("input[name='setting:tasks.max']", "1")
    browser.fill("input[name='setting:topic']", "orders")
    browser.click("input[name=stopped]")
    browser.click("#connector-form button.primary")
    browser.says("Connector lines is made.")
    browser.fill("input[name=confirm]", "lines")
    browser.click("button.danger")
    browser.says("Connector lines is deleted.")
    # That a form was refused is an answer of 422, of which the browser makes a note.
    assert all("422" in one for one in browser.complaints())


def test_the_focus_stays_where_it_is_when_a_page_refreshes_itself(browser: Browser, broker: Broker) -> None:
    browser.open("/topics")
    browser.driver.execute_script("document.querySelector('#list a[href=\"/topics/orders/records\"]').focus()")
    before = browser.one("#list").text
    broker.produce("orders", b"{}")
    browser.until(lambda: browser.one("#list").text != before)
    assert browser.driver.switch_to.active_element.get_attribute("href").endswith("/topics/orders/records")


def test_a_table_is_sorted_by_a_heading_and_stays_so(browser: Browser, broker: Broker) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "sorted"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 5), TopicPartition("orders", 1, 50)], asynchronous=False)
    consumer.close()

    def partitions() -> list[str]:
        return [cell.text for cell in browser.all("#offsets tbody td:nth-child(2)")]

    browser.open("/groups/sorted")
    browser.until(lambda: partitions() == ["0", "1"])
    browser.one("#offsets thead th:nth-child(2) button").click()
    assert partitions() == ["1", "0"]
    browser.one("#offsets thead th:nth-child(5) button").click()  # the lag
    assert partitions() == ["0", "1"]
    browser.one("#offsets thead th:nth-child(5) button").click()
    assert partitions() == ["1", "0"]
    before = browser.one("#offsets").text
    broker.produce("orders", b"{}", partition=0)
    browser.until(lambda: browser.one("#offsets").text != before)
    assert partitions() == ["1", "0"]
    assert browser.one("#offsets th[aria-sort]").text.startswith("Lag") and browser.complaints() == []


def test_the_tail_goes_on_and_can_be_stopped(browser: Browser, broker: Broker) -> None:
    browser.open("/topics/orders/records?tail=1")
    browser.says("Live:")
    broker.produce("orders", b'{"tail": "fresh"}')
    browser.says('"fresh"')
    browser.click("#cancel")
    browser.says("Cancelled")


def test_what_was_read_is_not_said_to_be_searched(browser: Browser) -> None:
    browser.open("/topics/orders/records?limit=50")
    browser.until(lambda: browser.one("#results").get_attribute("data-done"))
    told = browser.one("#told").text
    assert told.startswith("50 found; read ") and "% of the range is searched" in told, told
    browser.open("/topics/orders/records?limit=500&where=value.n < 0")
    browser.until(lambda: browser.one("#results").get_attribute("data-done"))
    assert "(100 % of the range)" in browser.one("#told").text


def test_a_stream_that_is_refused_says_so(browser: Browser) -> None:
    """As after a session has ended: it stayed at `Searching`."""
    other = "window.EventSource = class extends EventSource { constructor() { super('/nowhere'); } }"
    run = browser.driver.execute_cdp_cmd
    script = run("Page.addScriptToEvaluateOnNewDocument", {"source": other})
    try:
        browser.open("/topics/orders/records")
        browser.says("The connection was lost")
    finally:
        run("Page.removeScriptToEvaluateOnNewDocument", script)
    browser.driver.get_log("browser")


def test_an_address_with_a_broken_escape_leaves_the_page_working(browser: Browser) -> None:
    browser.open("/configuration#100%")
    browser.until(lambda: browser.one("#filter").get_attribute("value") == "100%")
    browser.open("/configuration")
    browser.one("body").send_keys("?")
    browser.until(lambda: browser.one("#keys").get_attribute("open"))
    assert browser.complaints() == []


def test_keys_and_the_switch_of_dark_and_light(browser: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open("/topics")
    body = browser.one("body")
    body.send_keys("d")
    chosen = browser.one("html").get_attribute("data-theme")
    browser.open("/groups")
    assert browser.one("html").get_attribute("data-theme") == chosen
    browser.one("body").send_keys("/")
    browser.driver.switch_to.active_element.send_keys("orders" + Keys.ENTER)
    browser.until(lambda: browser.driver.current_url.endswith("/topics/orders"))
    browser.one("body").send_keys("gb")
    browser.until(lambda: browser.driver.current_url.endswith("/brokers"))


def test_login_refusal_and_logout(browser: Browser, broker: Broker, tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[users.vera]\npassword = "{hashed("v")}"\nrole = "viewer"\n')
    with RunningConsole(broker.bootstrap_servers, users_file=str(users)) as guarded:
        inside = Browser(browser.driver, guarded.url)
        inside.open("/topics/orders/manage")
        inside.fill("input[name=user]", "vera")
        inside.fill("input[name=password]", "wrong")
        inside.click("button.primary")
        inside.says("The name or the password is wrong.")
        inside.fill("input[name=user]", "vera")
        inside.fill("input[name=password]", "v")
        inside.click("button.primary")
        inside.says("You are a viewer; to delete a topic takes an admin.")
        assert all(button.get_attribute("disabled") for button in inside.all("main .form button"))
        inside.driver.execute_script(
            "const f = document.querySelector('form[action*=\"/delete\"]'); f.confirm.value = 'orders'; f.submit()"
        )
        inside.says("Not allowed")
        inside.click(".who button")
        inside.one("input[name=password]")
        inside.open("/topics")
        assert "/login" in inside.driver.current_url
    browser.driver.get_log("browser")


def test_a_page_that_is_open_says_when_the_console_is_gone(browser: Browser, broker: Broker) -> None:
    with RunningConsole(broker.bootstrap_servers) as short:
        leaving = Browser(browser.driver, short.url)
        leaving.open("/")
        leaving.one("#health")
    leaving.says("The console does not answer.")
    browser.driver.get_log("browser")
