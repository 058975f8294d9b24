"""Debian's Chromium, driven through its own driver: nothing is downloaded."""

from __future__ import annotations

import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).resolve().parents[2] / ".cache" / "npm" / "axe-core.tgz"
_WAIT_S = 60.0


def require_chromium() -> tuple[str, str]:
    pytest.importorskip("selenium", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium is not installed: apt-get install chromium chromium-driver")
    return chromium, driver


def axe_source() -> str:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: python tools/fetch_test_tools.py fetches it from npm")
    with tarfile.open(AXE) as package:
        member = package.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


class Browser:
    def __init__(self, driver: Any, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, path: str) -> None:
        self.driver.get(self.url + path)

    def one(self, selector: str) -> Any:
        return self.until(lambda: next(iter(self.all(selector)), None))

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def fill(self, selector: str, text: str) -> None:
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def click(self, selector: str) -> None:
        self.one(selector).click()

    @property
    def text(self) -> str:
        return str(self.driver.find_element("css selector", "body").text)

    def until(self, look: Callable[[], Any]) -> Any:
        """What `look` gives once that is something; a page may be replaced under it meanwhile."""
        from selenium.common.exceptions import WebDriverException

        deadline = time.monotonic() + _WAIT_S
        while True:
            try:
                if found := look():
                    return found
            except WebDriverException as error:
                # Not there yet, gone since, or of the page before, which Chromium's driver says in several ways.
                why = error.msg
            else:
                why = "nothing"
            assert time.monotonic() < deadline, f"it did not happen on {self.driver.current_url}: {why}"
            time.sleep(0.05)

    def says(self, words: str) -> None:
        self.until(lambda: words in self.text)

    def complaints(self) -> list[str]:
        """What the page wrote to the browser's console: broken script, refused style, missing file."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@contextmanager
def browsing(url: str, *, width: int = 1280, height: int = 900) -> Iterator[Browser]:
    chromium, path = require_chromium()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(path))
    try:
        driver.set_window_size(width, height)
        yield Browser(driver, url)
    finally:
        driver.quit()
