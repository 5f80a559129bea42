"""The verdict on an ingestion, above everything else."""

from dataclasses import replace

from dashboard.verdict import overruled, verdict
from functions.operations.decisions.failed import discard, publish_anyway
from lakegate.audit.report import Reason
from tests.fakes.deployment import Deployment
from tests.fakes.job import errored, passed, rejected, warned


def test_a_rejection_says_that_main_is_unchanged_why_and_what_to_do() -> None:
    """A rejected and an unreadable file have main's state, the cause and the choices."""
    made = Deployment()
    bad = made.land("shop/orders/bad.csv", script=rejected)
    broken = made.land("shop/orders/broken.csv", script=errored)
    made.deliver()
    assert verdict(made.ingestion(bad)) == "Main is unchanged until its checks pass."
    made.settle()
    assert verdict(made.ingestion(bad)) == (
        "Main is unchanged: 1 of 2 checks failed: id.required. Drop a corrected file, or correct "
        "the contract and replay this one. If its rows are right as they are, publish it anyway. "
        "Discard it if it is not needed."
    )
    assert verdict(made.ingestion(broken)).startswith(
        "Main is unchanged: the file's rows cannot be read. Drop a corrected file, or fix the cause"
    )


def test_a_publication_names_its_rows_and_warnings() -> None:
    """A published file has its rows, the time, and how many checks warned."""
    made = Deployment()
    good = made.land("shop/orders/a.csv", script=passed)
    odd = made.land("shop/orders/b.csv", script=warned)
    made.settle()
    assert verdict(made.ingestion(good)).startswith("Main got its 3 rows on 1 Mar 2026, ")
    assert verdict(made.ingestion(odd)).endswith("1 check warned.")
    assert overruled(made.ingestion(good)) == ""


def test_who_overruled_the_audit_and_why_stays_visible() -> None:
    """A file that was published anyway names who did it, which checks failed, and the reason."""
    made = Deployment()
    bad = made.land("shop/orders/bad.csv", script=rejected)
    made.settle()
    publish_anyway(made.adapters, made.ingestion(bad), "Ann", "they are test rows")
    made.settle()
    said = overruled(made.ingestion(bad))
    assert said.startswith("Published anyway by Ann although id.required failed, ")
    assert said.endswith(": they are test rows")
    assert verdict(made.ingestion(bad)).startswith("Main got its 3 rows on ")


def test_nothing_is_left_to_do_after_a_discard() -> None:
    """A discarded file names who discarded it, and offers no other choice than a replay."""
    made = Deployment()
    bad = made.land("shop/orders/bad.csv", script=rejected)
    made.settle()
    discard(made.adapters, made.ingestion(bad), by="Ann")
    said = verdict(made.ingestion(bad))
    assert said.startswith("Main is unchanged: ")
    assert said.endswith("It was discarded by Ann; a replay reads it again.")


def test_rows_that_main_lost_are_not_called_unchanged() -> None:
    """For rows that a person took off main the verdict says that they are gone."""
    made = Deployment()
    bad = made.land("shop/orders/bad.csv", script=rejected)
    made.settle()
    lost = replace(made.ingestion(bad), reason=Reason("WITHDRAWN", "main was set back"))
    assert verdict(lost).startswith("Its rows are gone from main: main was set back. Replay it")
