"""Headless Chromium for tests: start it, open a page, and read what is visible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from support import require, until

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


def start(profile: Path, *, scripts: bool = True) -> webdriver.Chrome:
    chromium, driver = require("chromium", "chromium"), require("chromedriver", "chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    started = webdriver.Chrome(options=options, service=Service(driver))
    started.set_page_load_timeout(60)
    return started


def show(browser: webdriver.Chrome, path: Path, size: tuple[int, int] = (1280, 800)) -> None:
    """Open a page in a viewport of that size, and wait until its charts are drawn."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
    )
    log(browser, "performance")
    log(browser, "browser")
    browser.get(path.as_uri())
    wait_for(browser, "document.documentElement.dataset.charts === 'drawn' || !window.vegaEmbed")


def log(browser: webdriver.Chrome, name: str) -> list[dict[str, Any]]:
    """Return what the browser logged since the last call."""
    return list(browser.get_log(name))  # type: ignore[no-untyped-call]  # selenium leaves it untyped


def wait_for(browser: webdriver.Chrome, condition: str) -> None:
    until(
        lambda: browser.execute_script(f"return {condition}"), f"never became true: {condition}", within_s=30
    )


def in_view(browser: webdriver.Chrome) -> str:
    """Return all text inside the first viewport."""
    return str(
        browser.execute_script(
            """
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            const seen = [];
            while (walker.nextNode()) {
              const range = document.createRange();
              range.selectNodeContents(walker.currentNode);
              const box = range.getBoundingClientRect();
              const inside = box.width > 0 && box.height > 0 && box.top >= 0
                && box.bottom <= window.innerHeight && box.left >= 0 && box.right <= window.innerWidth;
              if (inside) seen.push(walker.currentNode.textContent.trim());
            }
            return seen.filter(Boolean).join('\\n').replaceAll('\\u00a0', ' ');
            """
        )
    )
