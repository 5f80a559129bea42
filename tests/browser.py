"""A headless Chromium, for tests and benchmarks of the quality page."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

from infra import browser
from tests.waiting import PATIENCE

# The browser sends requests only for the page, neither for updates nor to its vendor.
_ARGUMENTS = [
    "--no-sandbox",  # which a container without user namespaces has not
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a running browser; each test opens its own context in it.

    Expectations of a page have no short time limit.
    """
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=browser.found() or None, args=_ARGUMENTS
        )
        try:
            yield started
        finally:
            started.close()
