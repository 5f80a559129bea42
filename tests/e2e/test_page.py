"""The quality page over the whole stack, used in a real browser."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Position, expect

from functions.model.ingestion import Ingestion, State
from tests.browser import chromium
from tests.e2e.conftest import Gate, contract
from tests.page import Served, bare_environment, served
from tests.waiting import PATIENCE

pytestmark = pytest.mark.stack

TABLE = "page.orders"
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
_HOSTILE = "page/orders/[x](http:evil) :red[a] $x$ <img src=x onerror=alert(1)>.csv"
_BAD = b"id,amount\n3,5\n4,-7\n"
_PHONE = {"width": 390, "height": 844}
_BACKGROUND = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
_FIRST_BUTTON: Position = {
    "x": 66,
    "y": 53,
}  # in a grid, of whose rows the first one is below the head
_CHART = "[data-testid=stVegaLiteChart] :is(canvas, svg)"
_VIEWS = {
    "inbox": "/",
    "ingestions": "/ingestion",
    "overview": "/overview",
    "tables": "/table",
    "ingestion": "/ingestion?id={id}",
    "comparison": "/branch?id={id}",
    "table": f"/table?name={TABLE}",
}
_WITH_CHARTS = ("overview", "ingestion", "comparison", "table")
_WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Violations by Streamlit itself that cannot be mended here: the rule's id, and why.
_OF_STREAMLIT: dict[str, str] = {}


@dataclass(frozen=True)
class Visit:
    """The served page, and three files: one was published, and the others rejected."""

    served: Served
    browser: Browser
    published: Ingestion
    rejected: Ingestion
    replayed: Ingestion

    @contextmanager
    def page(self, path: str, *, enters: bool = True, **look: object) -> Iterator[Page]:
        """Open a path in a fresh browser, which may send requests only to the page's server.

        Unless it `enters`, it does not know the page's secret.
        """
        options: dict[str, object] = {"viewport": {"width": 1280, "height": 900}, **look}
        context = self.browser.new_context(**options)  # type: ignore[arg-type]
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        context.set_default_timeout(PATIENCE * 1000)
        try:
            if enters:
                self.served.enter(context)
            page = context.new_page()
            page.goto(self.served.address + path)
            yield page
        finally:
            context.close()
        own = (self.served.address, "data:", "blob:")
        assert [url for url in asked if not url.startswith(own)] == []


@pytest.fixture(scope="module")
def visit(gate: Gate) -> Iterator[Visit]:
    """Serve the stack's page by the command."""
    gate.put_contract(contract(TABLE, "csv"))
    good = gate.end(gate.drop("page/orders/good.csv", b"id,amount\n1,5\n2,7\n"))
    bad, again = gate.drop(_HOSTILE, _BAD), gate.drop("page/orders/again.csv", _BAD)
    rejected, replayed = gate.end(bad), gate.end(again)
    environment = bare_environment() | {"LAKEGATE_HOME": str(gate.home)}
    with served(environment, "--no-open") as found, chromium() as browser:
        yield Visit(found, browser, good, rejected, replayed)


def settled(page: Page, name: str) -> None:
    """Wait until a view's script is done and its contents no longer change."""
    page.get_by_role("heading", level=1).wait_for()
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    if name in _WITH_CHARTS:
        page.locator(_CHART).first.wait_for()


def keep(page: Page, name: str) -> None:
    """Save a screenshot of the page."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def test_a_browser_without_the_secret_is_told_what_to_do(visit: Visit) -> None:
    """It sees a sentence for everybody, and none of a deployment; the printed address leads in."""
    with visit.page(f"/ingestion?id={visit.rejected.id}", enters=False) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("This page is for who started it")
        assert _broken_rules(page) == []
        page.goto(visit.served.entrance)
        settled(page, "inbox")
        expect(page).to_have_url(f"{visit.served.address}/")


def test_an_alert_leads_to_the_reason(visit: Visit) -> None:
    """The inbox links to the failed checks and their findings, with the verdict above them.

    A hostile file name produces no markup, link or picture.
    """
    assert (visit.published.state, visit.rejected.state) == (State.PUBLISHED, State.REJECTED)
    with visit.page("/") as page:
        settled(page, "inbox")
        expect(page).to_have_title("Lakegate: the local stack")
        keep(page, "inbox-light")
        page.get_by_label("Search file").fill("page/orders")
        for_all = page.get_by_role("button", name="Discard all …")
        expect(for_all).to_have_count(1)
        for_all.click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text(re.compile("^2 files: "))).to_be_visible()
        expect(dialog.get_by_role("button", name="Yes, discard")).to_be_visible()
        assert page.locator("img[src=x]").count() == 0
        assert _broken_rules(page) == []
        keep(page, "inbox-group-light")
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        page.get_by_label("Search file").fill("evil")
        expect(page.get_by_text(re.compile("^1 file of"))).to_be_visible()
        _press_first(page)
        expect(page).to_have_url(re.compile(f"/ingestion\\?id={visit.rejected.id}"))
        expect(page.get_by_text(re.compile("^Main is unchanged: amount"))).to_be_in_viewport()
        expect(page.get_by_text("amount.invalidValues", exact=True).first).to_be_visible()
        found = "1 row whose amount is not between 0 and 100"
        expect(page.get_by_text(found, exact=True).first).to_be_visible()
        expect(
            page.get_by_role("heading", name=re.compile(r":red\[a\] \$x\$ <img"))
        ).to_be_visible()
        assert page.locator("img[src=x]").count() == 0
        assert page.get_by_role("link", name="x", exact=True).count() == 0
        keep(page, "ingestion-light")


def _press_first(page: Page) -> None:
    """Press the button of the grid's first row, which is drawn and not an element."""
    settled(page, "inbox")
    grid = page.get_by_test_id("stDataFrame").first
    grid.locator("canvas").first.wait_for()
    grid.click(position=_FIRST_BUTTON)


def _tab_to(page: Page, where: str, key: str = "Tab") -> None:
    """Press a key until a condition of the focused element is true."""
    for _ in range(60):
        page.keyboard.press(key)
        if page.evaluate(where):
            return
    raise AssertionError(f"no Tab leads to {where}")


def test_the_keyboard_alone_leads_there(visit: Visit) -> None:
    """A row of the grid is selected by Shift and Space; its link opens by Enter, in focus."""
    with visit.page("/", color_scheme="dark") as page:
        settled(page, "inbox")
        _tab_to(page, "document.activeElement.tagName === 'CANVAS'")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Shift+Space")
        page.get_by_role("link", name=re.compile("^Open ")).wait_for()
        _tab_to(page, "/ingestion.id=/.test(document.activeElement.href || '')", "Shift+Tab")
        looks = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(looks) == "solid"
        keep(page, "inbox-dark-keyboard")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"/ingestion\?id="))
        expect(page.get_by_text("Timeline")).to_be_visible()


@pytest.mark.parametrize(("name", "path"), list(_VIEWS.items()))
def test_it_fits_a_phone(visit: Visit, name: str, path: str) -> None:
    """At 390 pixels nothing overflows in both colour schemes, and the stack's name is visible."""
    with visit.page(path.format(id=visit.rejected.id), viewport=_PHONE) as page:
        settled(page, name)
        _fits(page, f"{name}-phone-light")
        _turn_dark(page, name)
        _fits(page, f"{name}-phone-dark")


def _fits(page: Page, picture: str) -> None:
    expect(page.get_by_text("the local stack")).to_be_visible()
    keep(page, picture)
    wide = "document.querySelector('[data-testid=stMain]').scrollWidth"
    page.wait_for_function(f"{wide} <= {_PHONE['width']}")  # charts are fitted when drawn


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_for_everybody(visit: Visit, scheme: str) -> None:
    """No view, and no dialog, breaks a rule of WCAG AA in either colour scheme; each has one h1."""
    found = {}  # from pages of their own: colours fade when an open view changes its scheme
    for name, path in _VIEWS.items():
        with visit.page(path.format(id=visit.rejected.id), color_scheme=scheme) as page:
            settled(page, name)
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
            found[name] = _broken_rules(page)
            if name == "ingestion":
                for verb in ("Replay", "Publish anyway", "Discard"):
                    page.get_by_role("button", name=f"{verb} …").click()
                    page.get_by_role("button", name=f"Yes, {verb.lower()}").wait_for()
                    keep(page, f"{verb}-{scheme}")
                    found[verb] = _broken_rules(page)
                    page.keyboard.press("Escape")
                    page.get_by_role("dialog").wait_for(state="detached")
    assert not {name: rules for name, rules in found.items() if rules}


def _turn_dark(page: Page, name: str) -> None:
    """Change the colour scheme of an open view from light to dark."""
    light = page.evaluate(_BACKGROUND)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{_BACKGROUND} !== '{light}'")
    settled(page, name)


def _broken_rules(page: Page) -> list[str]:
    """Return each place that breaks a rule of axe's: the rule, the element and why."""
    page.wait_for_load_state("networkidle")
    result = Axe().run(page, options={"runOnly": _WCAG}).response
    return [
        f"{rule['id']}: {node['html']} ({node['failureSummary']})"
        for rule in result["violations"]
        if rule["id"] not in _OF_STREAMLIT
        for node in rule["nodes"]
    ]


def test_a_replay_shows_the_new_contract_and_its_end(visit: Visit, gate: Gate) -> None:
    """The dialog has the contract's changed line, and the view changes by itself at the end."""
    gate.put_contract(contract(TABLE, "csv").replace("version: 1.0.0", "version: 1.1.0"))
    with visit.page(f"/ingestion?id={visit.replayed.id}") as page:
        page.get_by_role("button", name="Replay …").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text("+version: 1.1.0")).to_be_visible()
        assert _broken_rules(page) == []
        keep(page, "replay-light")
        with gate.untold():  # so that the replay is under way for as long as the page is looked at
            dialog.get_by_role("button", name="Yes, replay").click()
            expect(page.get_by_text("This page keeps itself up to date.")).to_be_visible()
            under_way = gate.submitted(visit.replayed.landed, attempt=2)
        gate.tell(under_way)
        expect(page.get_by_text(re.compile("^Main is unchanged: amount"))).to_be_visible()
        expect(page.get_by_text("This page keeps itself up to date.")).to_have_count(0)


def test_a_table_reports_its_story(visit: Visit) -> None:
    """A table's page shows rows, columns, the contract, main's commits, and check results."""
    with visit.page(f"/table?name={TABLE}") as page:
        page.locator(_CHART).first.wait_for()
        keep(page, "table-light")
        page.get_by_role("tab", name="Commits").click()
        page.get_by_role("link", name="The newest one's ingestion").wait_for()
        page.get_by_role("tab", name="Checks").click()
        page.get_by_text("Read how the checks of the last 30 days ended").click()
        page.get_by_text(re.compile(r"^\d+ checks$|No run of the last")).wait_for()
        keep(page, "table-checks-light")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"/ingestion?id={'f' * 32}", "UNKNOWN_INGESTION"),
        ("/table?name=no.such", "UNKNOWN_TABLE"),
        ("/branch", "A comparison belongs to an ingestion"),
        ("/table", "Tables on main"),
    ],
)
def test_what_is_not_there_is_a_sentence(visit: Visit, path: str, words: str) -> None:
    """A link that is old or missing leads to a sentence and a link, never to a traceback."""
    with visit.page(path) as page:
        page.get_by_text(re.compile(words)).first.wait_for()
        assert page.get_by_text("Traceback").count() == 0


def test_a_failed_branch_is_compared_and_discarded(visit: Visit, gate: Gate) -> None:
    """The page compares a file's rows with main's, and a confirmed button deletes the branch.

    It is the last of the tests here, because it deletes the rejected file.
    """
    with visit.page(f"/branch?id={visit.rejected.id}") as page:
        page.locator(_CHART).first.wait_for()
        expect(page.get_by_role("cell", name="-7", exact=True)).to_be_visible()
        keep(page, "branch-light")
        page.get_by_role("button", name="Find all such rows on the branch").click()
        page.get_by_test_id("stDataFrame").first.wait_for()
        page.get_by_role("button", name="Discard …").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text("the local stack")).to_be_visible()
        expect(dialog.get_by_text(visit.rejected.id[:12], exact=True)).to_be_visible()
        expect(dialog.get_by_text("1 branch will be deleted")).to_be_visible()
        keep(page, "branch-discard-light")
        dialog.get_by_role("button", name="Yes, discard").click()
        expect(page.get_by_text(re.compile(r"^Discarded .*: its branches are del"))).to_be_visible()
    assert gate.adapters.ledger.get(visit.rejected.id).decisions.discarded
    assert gate.adapters.catalog.branches(visit.rejected.branch) == []
