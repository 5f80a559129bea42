"""Measure how long the quality page takes to show.

`python -m benchmarks.page [--runs N]`, over a real Nessie, S3 and DynamoDB (ministack's), in a real
browser: from the navigation to the first list, or else to the first chart, that is drawn, each time
in a fresh browser context. Each turn also shows a Streamlit page of one chart and no data.
"""

import argparse
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import boto3
from PIL import Image
from playwright.sync_api import Browser, ViewportSize

from benchmarks import page_data
from benchmarks.results import contract, told
from functions.model.ingestion import State
from functions.settings import Settings
from infra.local.parts import free_port
from infra.local.settings import LAKE_BUCKET
from tests.browser import chromium
from tests.fakes.deployment import SETTINGS
from tests.page import Served, served
from tests.services import LANDING, Services, services
from tests.template import ledger_table
from tests.waiting import eventually, listening

_INGESTIONS, _ROWS = 10_000, 10_000_000
_AIM = 1.5  # seconds
_PLAIN = "import streamlit\n\nstreamlit.line_chart([1, 2, 3])\n"
_PICTURE: ViewportSize = {"width": 1200, "height": 900}
_COLOURS = 128
_CHART = "[data-testid=stVegaLiteChart] :is(canvas, svg)"
_SHOWN = dict.fromkeys(("inbox", "ingestions"), "[data-testid=stDataFrame] canvas")


def main() -> None:
    """Fill the stores, serve the page, measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page")
    parser.add_argument("--runs", type=int, default=7, help="counted runs of each view")
    parser.add_argument("--pictures", type=Path, help="a folder for the README's pictures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, services(Path(home)) as running:
        paths = _filled(running)
        environment = {**os.environ, **_environment(running)}
        with (
            served(environment, "--no-open") as site,
            _plain_page(Path(home)) as plain,
            chromium() as browser,
        ):
            first = _seconds(browser, site, "inbox", paths["inbox"])  # of a page just started
            _seconds(browser, plain, "plain", "/")
            views = {"plain": (plain, "/"), **{name: (site, path) for name, path in paths.items()}}
            taken = _in_turns(browser, views, given.runs)
            if given.pictures:
                _draw(browser, site, paths, given.pictures)
    _tell({"first_view_of_all": first, "load": os.getloadavg()[0]}, taken)


def _filled(running: Services) -> dict[str, str]:
    """Fill the stores and return each view's path."""
    every = list(page_data.ingestions(_INGESTIONS, datetime.now(UTC)))
    running.put_contract(page_data.TABLE, contract(page_data.TABLE, page_data.COLUMNS))
    page_data.fill_table(running, _ROWS)
    of_table = [
        each for each in every if each.table == page_data.TABLE and not each.decisions.discarded
    ]
    last = [each for each in of_table if each.state is State.REJECTED][-1]
    rejected = page_data.fill_branch(running, last)
    page_data.put_report(running, rejected)
    filled = [rejected if each is last else each for each in every]
    page_data.fill_ledger(ledger_table(boto3.resource("dynamodb"), "ledger"), filled)
    return {
        "inbox": "/",
        "ingestions": "/ingestion",
        "overview": "/overview",
        "ingestion": f"/ingestion?id={rejected.id}",
        "comparison": f"/branch?id={rejected.id}",
        "table": f"/table?name={page_data.TABLE}",
    }


def _environment(running: Services) -> Mapping[str, str]:
    """Return the variables that point the page to these services."""
    settings: Settings = replace(
        SETTINGS,
        landing_bucket=LANDING,
        lake_bucket=LAKE_BUCKET,
        nessie_uri=running.nessie_uri,
        nessie_token_secret="job-token",  # noqa: S106  its name
    )
    named = {name: value for name, value in asdict(settings).items() if isinstance(value, str)}
    return {f"LAKEGATE_{name.upper()}": value for name, value in named.items()} | {
        "LAKEGATE_READER_TOKEN": running.tokens["reader"],
        "LAKEGATE_STAGE": "demo",  # what the pictures' captions name
    }


@contextmanager
def _plain_page(home: Path) -> Iterator[Served]:
    """Serve a page of one chart and no data, which is the least that Streamlit takes."""
    script, port = home / "plain.py", free_port(set())
    script.write_text(_PLAIN)
    command = [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}"]
    options = ("--server.headless=true", "--browser.gatherUsageStats=false")
    with subprocess.Popen(
        [*command, *options, "--server.address=127.0.0.1"], stdout=subprocess.DEVNULL
    ) as server:
        try:
            eventually(lambda: listening(port))
            yield Served(port, f"http://127.0.0.1:{port}")
        finally:
            server.terminate()


def _in_turns(
    browser: Browser, views: Mapping[str, tuple[Served, str]], turns: int
) -> dict[str, list[float]]:
    """Return each view's seconds, one of each by turn."""
    taken: dict[str, list[float]] = {name: [] for name in views}
    for _ in range(turns):
        for name, (site, path) in views.items():
            taken[name].append(_seconds(browser, site, name, path))
    return taken


def _seconds(browser: Browser, site: Served, name: str, path: str) -> float:
    """Return the seconds from the navigation until a view is shown in a fresh browser context."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        site.enter(context)
        begin = time.perf_counter()
        page = context.new_page()
        page.goto(site.address + path, wait_until="commit")
        page.wait_for_selector(_SHOWN.get(name, _CHART), timeout=60_000)
        return time.perf_counter() - begin
    finally:
        context.close()


def _draw(browser: Browser, site: Served, paths: Mapping[str, str], folder: Path) -> None:
    """Draw the README's two pictures, in as few colours as they need."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("inbox", "ingestion"):
        context = browser.new_context(viewport=_PICTURE, color_scheme="light")
        site.enter(context)
        page = context.new_page()
        page.goto(site.address + paths[name])
        page.wait_for_selector(_SHOWN.get(name, _CHART))
        page.wait_for_load_state("networkidle")
        drawn = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
        drawn.quantize(_COLOURS).save(folder / f"page-{name}.png", optimize=True)
        context.close()


def _tell(about: Mapping[str, float], taken: Mapping[str, list[float]]) -> None:
    plain = statistics.median(taken["plain"])
    views = {
        name: {
            "median": statistics.median(seconds),
            "slowest": max(seconds),
            "aim": _AIM,
            "beside_plain": statistics.median(seconds) / plain,
        }
        for name, seconds in taken.items()
    }
    results = {"ingestions": _INGESTIONS, "rows": _ROWS, **about, "views": views}
    told("bench-page", results)


if __name__ == "__main__":
    main()
