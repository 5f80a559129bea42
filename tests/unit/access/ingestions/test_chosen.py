"""People name several ingestions at once: by ids, or by their cause."""

from dataclasses import replace

import pytest

from access.ingestions.decisions import chosen
from functions.model.decisions import Decisions
from functions.model.ingestion import Ingestion
from lakegate.audit.report import AuditReport, Reason
from lakegate.errors import LakegateError
from tests.fakes.deployment import Deployment
from tests.fakes.job import errored, passed, rejected

WHY = "2 rows without hotel"


def without_hotel(report: AuditReport) -> AuditReport:
    """Return the report of a file that is rejected for another check."""
    bad = rejected(report)
    (failed_,) = bad.failed
    other = (replace(failed_, id="hotel.nullValues"),)
    return replace(bad, checks=other, reason=Reason("CHECKS_FAILED", WHY))


def failed() -> tuple[Deployment, list[Ingestion]]:
    """Return three files with a cause, and one with another; a fifth is published."""
    deployment = Deployment()
    scripts = (rejected, rejected, without_hotel, rejected, passed)
    landed = [
        deployment.land(f"shop/orders/{n}.csv", script=each) for n, each in enumerate(scripts)
    ]
    deployment.settle()
    return deployment, [deployment.ingestion(each) for each in landed]


def names(found: list[Ingestion]) -> list[str]:
    return sorted(each.name for each in found)


def test_each_id_names_one_ingestion_once() -> None:
    """An id that is given twice, or by its beginning, is decided about once."""
    deployment, every = failed()
    ids = [every[1].id, every[0].id, every[1].id[:12]]
    assert names(chosen(deployment.adapters, ids, "")) == ["0.csv", "1.csv"]


def test_the_ledger_is_read_once_for_all_beginnings_of_ids() -> None:
    """It may have a million, of which outlines are read; people name many as lists show them."""
    deployment, every = failed()
    deployment.journal.calls.clear()
    found = chosen(deployment.adapters, [each.id[:8] for each in every], "")
    assert names(found) == names(every)
    assert deployment.journal.calls == ["ledger.outlines", "ledger.together"]


def test_an_ingestion_names_all_with_its_cause() -> None:
    """These are of the same tables, and failed the same checks for the same reason."""
    deployment, every = failed()
    of_one = chosen(deployment.adapters, [], every[0].id[:12])
    assert names(of_one) == ["0.csv", "1.csv", "3.csv"]
    assert names(chosen(deployment.adapters, [], every[2].id)) == ["2.csv"]


def test_only_failures_with_its_reason_are_read() -> None:
    """Thousands may wait for other reasons, which lists know without reading them whole."""
    deployment, every = failed()
    for number in range(5):
        deployment.land(f"shop/orders/other-{number}.csv", script=errored)
    deployment.settle()
    deployment.ledger.read_by_id = 0
    chosen(deployment.adapters, [], every[0].id)
    assert deployment.ledger.read_by_id == 4


def test_words_name_all_with_them_in_their_reason() -> None:
    """Case does not matter; what is published or discarded does not wait any more."""
    deployment, every = failed()
    assert names(chosen(deployment.adapters, [], "WITHOUT hotel")) == ["2.csv"]
    now = deployment.ledger.get(every[2].id)
    deployment.ledger.save(now.but(decisions=Decisions(discarded=True)))
    with pytest.raises(LakegateError, match=r"NONE_WAITS.*hotel"):
        chosen(deployment.adapters, [], "without hotel")


@pytest.mark.parametrize("word", ["facade", "DEADBEEF"])
def test_a_word_of_hexadecimal_letters_is_no_id(word: str) -> None:
    """Only what is as long as lists show ids names an ingestion: no file is taken for another."""

    def about_word(report: AuditReport) -> AuditReport:
        return replace(without_hotel(report), reason=Reason("CHECKS_FAILED", f"no {word}"))

    deployment, every = failed()
    deployment.land("shop/orders/word.csv", script=about_word)
    deployment.settle()
    assert names(chosen(deployment.adapters, [], word)) == ["word.csv"]
    with pytest.raises(LakegateError, match="NONE_WAITS"):
        chosen(deployment.adapters, [], every[0].id[:11])


@pytest.mark.parametrize(("ids", "cause"), [([], ""), (["0123456789ab"], "hotel")])
def test_either_ids_or_a_cause_must_be_given(ids: list[str], cause: str) -> None:
    """With neither, or with both, it would be unclear what is meant."""
    with pytest.raises(LakegateError, match=r"(?s)WHICH_ONES.*runs --waiting"):
        chosen(Deployment().adapters, ids, cause)
