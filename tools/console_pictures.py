"""Takes the pictures of docs/console.md: a small shop on a broker in this process, its console, and Chromium.

Run it with `python tools/console_pictures.py [FOLDER]`; it takes about two minutes, as charts need a history.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ottla.common.lineage import HEADER  # noqa: E402
from ottla.testing import Broker, Registry  # noqa: E402
from tests.console.browser import Browser, browsing  # noqa: E402
from tests.console.running import RunningConsole  # noqa: E402

HISTORY_S = 75
PARTITIONS = {"orders": 6, "payments": 3, "shipments": 3, "customers": 3, "page-views": 3, "inventory.changes": 2}
WEIGHTS = (5, 3, 1, 1, 6, 2)
NAMES = ("Ada", "Grace", "Linus", "Barbara", "Edsger", "Radia")
SCHEMAS = (
    [{"name": "id", "type": "long"}, {"name": "customer", "type": "string"}, {"name": "total", "type": "double"}],
    [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "total", "type": "double"},
        {"name": "currency", "type": "string", "default": "EUR"},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
)
# File, page, dark or light, width, height.
PICTURES = (
    ("overview", "/", "dark", 1280, 800),
    ("overview-light", "/", "light", 1280, 800),
    ("topics", "/topics", "light", 1280, 520),
    ("records", '/topics/orders/records?where=value.amount > 850 and headers.region == "eu"', "light", 1280, 800),
    ("record", "/topics/orders/records/0/5", "dark", 1280, 760),
    ("trace", "/trace?by=key,json:order&topics=orders,payments,shipments&", "light", 1280, 960),
    ("group", "/groups/shipping", "dark", 1280, 800),
    ("offsets", "/groups/reporting/offsets?to=time&at=-1m", "light", 1280, 640),
    ("schema", "/schemas/orders-value", "light", 1280, 720),
    ("broker", "/brokers/1", "dark", 1280, 640),
    ("latency", "/latency", "light", 1280, 760),
    ("phone", "/topics/orders/records", "dark", 390, 780),
    ("phone-overview", "/", "light", 390, 780),
)


class Shop:
    """Writes and reads until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._random = random.Random(7)
        self._number = 0
        self._stopping = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})
        self._threads = [
            threading.Thread(target=self._write),
            threading.Thread(target=self._read, args=("billing", ["orders", "payments"], 0.0, None)),
            threading.Thread(target=self._read, args=("shipping", ["orders"], 0.012, None)),
            threading.Thread(target=self._read, args=("reporting", ["orders"], 0.0, 900)),
        ]

    def open(self) -> None:
        """What was sold before anybody looked."""
        for _ in range(8_000):
            self._order()
        self._producer.flush(60)
        self.picked = self._story()

    def _story(self) -> str:
        """One order on its way, as an address names its first record."""
        told: list[Message] = []
        now_ms = time.time_ns() // 1_000_000 - 120_000

        def send(topic: str, value: dict[str, object], after_ms: int, **more: object) -> None:
            told.clear()
            text = json.dumps(value)
            self._producer.produce(
                topic, text, timestamp=now_ms + after_ms, on_delivery=lambda _, message: told.append(message), **more
            )
            self._producer.flush(60)

        send("orders", {"euro": 45, "items": 2}, 0, key="order-4711")
        first = told[0]
        made_of = f"orders/{first.partition()}/{first.offset()} charge/17"
        send("payments", {"order": "order-4711", "status": "paid"}, 1_700, headers={HEADER: made_of})
        send("shipments", {"parcel": 7, "carrier": "post"}, 95_000, key="order-4711")
        return f"topic=orders&partition={first.partition()}&offset={first.offset()}"

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _order(self) -> None:
        pick = self._random
        self._number += 1
        user = pick.randint(1, 500)
        value = {
            "id": self._number,
            "user": {"id": user, "name": pick.choice(NAMES)},
            "amount": round(pick.uniform(5, 900), 2),
            "items": [{"sku": f"S-{pick.randint(100, 999)}", "n": pick.randint(1, 4)}],
            "status": pick.choice(("new", "paid", "packed")),
        }
        headers = {"region": pick.choice(("eu", "us", "ap"))}
        topic = pick.choices(list(PARTITIONS), WEIGHTS)[0]
        self._producer.produce(topic, json.dumps(value), key=f"user-{user}", headers=headers)
        self._producer.poll(0)

    def _write(self) -> None:
        while not self._stopping.wait(0.25):
            for _ in range(int(60 + 60 * self._random.random() * (1 + self._random.random()))):
                self._order()
        self._producer.flush(60)

    def _read(self, group: str, topics: list[str], pause_s: float, most: int | None) -> None:
        settings = {"bootstrap.servers": self._bootstrap, "group.id": group, "client.id": f"{group}-1"}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000})
        consumer.subscribe(topics)
        count = 0
        while not self._stopping.is_set() and (most is None or count < most):
            count += consumer.poll(0.2) is not None
            if pause_s:
                time.sleep(pause_s)
        consumer.commit(asynchronous=False)
        consumer.close()


def take(browser: Browser, folder: Path, name: str, path: str, theme: str, width: int, height: int) -> None:
    run = browser.driver.execute_cdp_cmd
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    run("Emulation.setDeviceMetricsOverride", screen)
    run("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
    browser.open(path)
    if "/records" in path and path.count("/") == 3:
        browser.until(lambda: browser.one("#results").get_attribute("data-done"))
    if path.startswith("/trace"):
        browser.until(lambda: browser.one("#tracing").get_attribute("data-done"))
    time.sleep(0.3)
    browser.driver.save_screenshot(str(folder / f"{name}.png"))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        Broker({"ottla.metrics.listen": "127.0.0.1:0"}) as broker,
        Registry(broker.bootstrap_servers) as registry,
        tempfile.TemporaryDirectory() as pipelines,
    ):
        metrics = broker.server.metrics
        assert metrics is not None
        for topic, partitions in PARTITIONS.items():
            broker.create_topic(topic, partitions, {"cleanup.policy": "compact"} if topic == "customers" else None)
        settings = {
            "registry": registry.url,
            "pipelines": Path(pipelines),
            "interval_s": 2.0,
            "metrics": (metrics.url,),
        }
        shop = Shop(broker.bootstrap_servers)
        shop.open()
        with RunningConsole(broker.bootstrap_servers, **settings) as console:
            shop.start()
            visitor = console.visitor()
            for fields in SCHEMAS:
                schema = json.dumps({"type": "record", "name": "Order", "fields": fields})
                visitor.post("/schemas", {"subject": "orders-value", "schema": schema})
            time.sleep(HISTORY_S)
            with browsing(console.url) as browser:
                for name, path, *how in PICTURES:
                    take(browser, folder, name, path + shop.picked if name == "trace" else path, *how)
            shop.stop()


if __name__ == "__main__":
    main()
