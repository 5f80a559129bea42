"""The documentation leads to each of its pages, and each page says what it is for."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def linked(page: Path) -> set[Path]:
    """Return the files of this repository to which a page links."""
    links = (link for link in _LINK.findall(page.read_text()) if "://" not in link)
    return {(page.parent / link).resolve() for link in links}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_begins_with_what_it_is_for(page: Path) -> None:
    """Under its title each page says in a sentence what it is for."""
    title, blank, first, *_ = page.read_text().splitlines()
    assert title.startswith("# ")
    assert (blank, first.partition(" ")[0]) == ("", "This")
    assert first.startswith("This page ")


def test_the_index_leads_to_every_page() -> None:
    """The index has a link to each page and each schema in docs/."""
    others = {page for page in PAGES if page.name != "README.md"}
    assert others | {*DOCS.glob("*.json")} <= linked(DOCS / "README.md")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """A link to another file of the repository names one that exists."""
    assert [str(each) for each in linked(page) if not each.exists()] == []
