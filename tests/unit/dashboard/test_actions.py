"""The quality page's replay, publish and discard: the plan, the action and the result."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dashboard.actions_plan import ActionRequest, Verb, carry_out, offered, plan
from functions.model.ingestion import Ingestion, State
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject
from tests.fakes.deployment import ORDERS, OTHER_TABLE, TABLE, Deployment
from tests.fakes.job import errored, passed, rejected

REPLAY, DISCARD = ActionRequest(Verb.REPLAY, "Ann"), ActionRequest(Verb.DISCARD, "Ann")
PUBLISH = ActionRequest(Verb.PUBLISH, " Ann ", "it is known")


def failed(
    script: Callable[[AuditReport], AuditReport | None] = rejected, key: str = "a.parquet"
) -> tuple[Deployment, LandedObject]:
    """Return a deployment with a file on main, and one that ended as scripted."""
    deployment = Deployment()
    deployment.land("shop/orders/first.parquet")
    deployment.settle()
    landed = deployment.land(f"shop/orders/{key}", script=script)
    deployment.settle()
    return deployment, landed


def refused(report: AuditReport) -> AuditReport:
    """Return the run that rejects the file before it writes a row."""
    return replace(rejected(report), audited_hash="", rows_written=0)


def told(deployment: Deployment, ingestion: Ingestion, wish: ActionRequest) -> str:
    return "\n".join(plan(deployment.adapters, ingestion, wish).lines)


def test_a_replay_names_attempt_and_contract() -> None:
    """The plan of a replay names the attempt, and the contract's version as new or unchanged."""
    deployment, landed = failed()
    seen = deployment.ingestion(landed)
    same = told(deployment, seen, REPLAY)
    assert "as attempt 2, on a fresh branch" in same
    assert "`shop-orders` version `1.0.0`, the same as before" in same
    assert f"`{seen.branch}` stays" in same
    mended = ORDERS.replace("version: 1.0.0", "version: 1.0.1")
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", mended.encode())
    assert "version `1.0.1`, a new one" in told(deployment, seen, REPLAY)
    original = told(deployment, seen, replace(REPLAY, original=True))
    assert "the contract of the last attempt: `shop-orders` version `1.0.0`." in original


def test_a_batch_is_replayed_whatever_other_tables_contracts_are() -> None:
    """The plan of a batch reads the contracts of its tables; an invalid one of another is none."""
    deployment = Deployment()
    landed = deployment.batch("b", {"r.csv": OTHER_TABLE}, script=rejected)
    deployment.settle()
    deployment.lake.put_text("contracts/shop.third.yaml", b"no contract")
    assert "`shop-returns` version" in told(deployment, deployment.ingestion(landed), REPLAY)


def test_a_replay_shows_how_the_contract_differs() -> None:
    """A replay by a new contract shows the changed lines; by the original one there are none.

    If the contract that judged the file is gone, the plan says so.
    """
    deployment, landed = failed()
    seen = deployment.ingestion(landed)
    assert plan(deployment.adapters, seen, REPLAY).contract_changes == ()
    mended = ORDERS.replace("version: 1.0.0", "version: 1.0.1\u202e")
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", mended.encode())
    changes = plan(deployment.adapters, seen, REPLAY).contract_changes
    assert "-version: 1.0.0" in changes
    assert "+version: 1.0.1\ufffd" in changes
    original = plan(deployment.adapters, seen, replace(REPLAY, original=True))
    assert original.contract_changes == ()
    lost = plan(
        deployment.adapters, replace(seen, terms=replace(seen.terms, contract_version="v9")), REPLAY
    )
    assert lost.contract_changes == ()
    assert "cannot be compared: `there is no object contracts/shop.orders.yaml" in lost.lines[-1]


def test_a_replay_by_the_original_is_not_planned_across_write_modes() -> None:
    """The page refuses it as the command does, before anybody confirms."""
    deployment, landed = failed()
    seen = deployment.ingestion(landed)
    keyed = ORDERS.replace("required: true", "primaryKey: true")
    asked = "customProperties: [{property: writeMode, value: upsert}]\n"
    deployment.lake.put_text(f"contracts/{TABLE}.yaml", f"{keyed}{asked}".encode())
    with pytest.raises(LakegateError, match="CONTRACT_OUTDATED"):
        plan(deployment.adapters, seen, replace(REPLAY, original=True))
    assert "the contract in force now" in told(deployment, seen, REPLAY)


def test_a_publication_names_rows_and_checks() -> None:
    """The plan of a publication names the rows, the failed checks, the branch and its hash."""
    deployment, landed = failed()
    seen = deployment.ingestion(landed)
    words = told(deployment, seen, PUBLISH)
    assert f"{seen.audit.rows:,} rows go into `shop.orders` on main" in words
    assert f"`{seen.branch}` at `{seen.audited_hash[:12]}`" in words
    assert "1 check failed, and this overrules them:\n- `id.required`: `1 row`" in words
    assert f"To undo it: `lakegate retract {seen.id} --by NAME --reason TEXT` removes" in words


def test_a_publication_that_cannot_be_is_not_reported_as_one() -> None:
    """Without the branch the plan of a publication is refused, as the command refuses it."""
    deployment, landed = failed()
    seen = deployment.ingestion(landed)
    deployment.catalog.delete_branch(seen.branch)
    with pytest.raises(LakegateError, match=r"BRANCH_GONE.*lakegate replay"):
        plan(deployment.adapters, seen, PUBLISH)


def test_a_publication_without_a_report_says_so() -> None:
    """Without a report the plan gives the reason instead of checks, and rows can be published."""
    deployment, landed = failed()
    deployment.lake.lose("reports/")
    seen = deployment.ingestion(landed)
    words = told(deployment, seen, PUBLISH)
    assert "It was kept back for this reason: `1 of 2 checks failed: id.required`" in words
    assert "The audit report is gone" in words
    carry_out(deployment.adapters, seen, PUBLISH)
    assert deployment.ingestion(landed).state is State.PUBLISHED


def test_a_discard_names_branches() -> None:
    """A discard deletes exactly the branches of its plan, and only a replay is left."""
    deployment, landed = failed()
    seen = deployment.ingestion(landed)
    said = plan(deployment.adapters, seen, DISCARD)
    assert f"`{seen.branch}` at" in said.lines[1]
    assert "1 branch will be deleted" in said.lines[0]
    assert deployment.catalog.branches("ingest/") == [seen.branch]
    (words, *_) = carry_out(deployment.adapters, seen, DISCARD)
    assert words.startswith("discarded a.parquet: its branches are deleted")
    assert deployment.catalog.branches("ingest/") == []
    assert offered(deployment.ingestion(landed)) == (Verb.REPLAY,)


def test_a_name_that_is_markdown_is_shown_as_it_is() -> None:
    """A file's name becomes no link, picture or formula in a confirmation."""
    deployment, landed = failed(key="[x](http:y) `$z$`.parquet")
    words = told(deployment, deployment.ingestion(landed), REPLAY)
    assert "`` shop/orders/[x](http:y) `$z$`.parquet ``" in words


@pytest.mark.parametrize("wish", [REPLAY, PUBLISH, DISCARD])
def test_what_is_pressed_twice_is_done_once(wish: ActionRequest) -> None:
    """A second press on the same state changes nothing and raises an error."""
    deployment, landed = failed()
    seen = deployment.ingestion(landed)
    assert carry_out(deployment.adapters, seen, wish)
    after = deployment.ingestion(landed)
    with pytest.raises(LakegateError):
        carry_out(deployment.adapters, seen, wish)
    assert deployment.ingestion(landed) == after


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (rejected, (Verb.REPLAY, Verb.PUBLISH, Verb.DISCARD)),
        (refused, (Verb.REPLAY, Verb.DISCARD)),
        (errored, (Verb.REPLAY, Verb.DISCARD)),
        (passed, ()),
    ],
)
def test_only_what_can_be_done_is_offered(
    script: Callable[[AuditReport], AuditReport | None], expected: tuple[Verb, ...]
) -> None:
    """Only rejected rows can be published, and a published ingestion has no actions."""
    deployment, landed = failed(script)
    assert offered(deployment.ingestion(landed)) == expected


def test_a_change_is_reported_as_one() -> None:
    """The plan of a change speaks of its statement and of added and removed rows."""
    deployment, _ = failed()
    landed = deployment.change(script=rejected)
    deployment.settle()
    seen = deployment.ingestion(landed)
    assert told(deployment, seen, REPLAY).startswith("The statement is run once more")
    words = told(deployment, seen, PUBLISH)
    assert "removed: the change goes into `shop.orders`" in words
    assert "To undo it: `lakegate restore TABLE` goes back" in words
