from dataclasses import replace

from cli.ingestions.runs import listed, undecided
from lakegate.audit.report import Reason
from tests.unit.cli.cli_examples import (
    PUBLISHED,
    QUEUED,
    REJECTED,
)
from tests.unit.cli.shown import shown


def test_a_list_of_runs_names_each_by_the_beginning_of_its_id() -> None:
    """A line has short id, state, table, key, rows and reason."""
    text = shown(listed([PUBLISHED, REJECTED]))

    assert "0123456789ab published shop.orders shop/orders/[red] März.csv 1,842" in text
    assert "0123456789ab rejected" in text
    assert "0123456789ab landed (queued) shop.orders" in shown(listed([QUEUED]))
    assert text.endswith("CHECKS_FAILED")


def test_what_waits_for_a_decision_says_why_and_since_when() -> None:
    """A line has short id, table, key, cause in words, rows, age and owner."""
    long = replace(
        REJECTED,
        terms=replace(REJECTED.terms, owner="Ada"),
        reason=Reason("COLUMNS", "18 columns " * 40),
    )
    text = shown(undecided([REJECTED, long], "2026-03-04T13:00:00.000+00:00"))
    assert "id table file cause rows age owner" in text
    assert "shop/orders/[red] März.csv 1 of 3 checks failed: total.range 1,842 3 d -" in text
    assert "3 d Ada" in text
    assert "…" in text
