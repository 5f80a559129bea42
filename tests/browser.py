"""A headless Chromium, for tests and benchmarks of the quality page."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

from infra import browser
from tests.waiting import PATIENCE

# It asks nobody but the page: neither for updates nor for anything else of its maker's.
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
    """A running browser; each test opens a context of its own in it.

    What is expected of a page may take as long as it takes.
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
