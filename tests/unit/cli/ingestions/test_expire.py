"""`lakegate expire` says what it deletes."""

import pytest
from typer.testing import CliRunner

from cli.console.options import NotAgreed
from cli.ingestions import expire
from cli.main import app
from functions.operations.upkeep.daily import upkeep
from functions.operations.upkeep.expire import Expired
from functions.operations.upkeep.recognition import InDoubt
from tests.fakes.job import rejected
from tests.fakes.scenario import Scenario


@pytest.mark.parametrize(("dry_run", "done"), [(True, "would be deleted"), (False, "deleted")])
def test_an_expiry_says_what_goes(dry_run: bool, done: str) -> None:
    """An expiry prints the branches; a dry run says that they stay."""
    expired = Expired("shop.orders", ("ingest/x",), "2026", "a" * 32)
    assert expire.line(expired, dry_run=dry_run) == f"ingest/x: {done}"


def test_an_expiry_that_failed_says_so() -> None:
    """A branch that could not be deleted is named with the reason."""
    expired = Expired("shop.orders", ("ingest/x",), "2026", left="S3 is away")
    assert expire.line(expired, dry_run=False) == ("ingest/x: not deleted completely: S3 is away")


def test_nothing_expires_while_main_lacks_what_it_had() -> None:
    """The command deletes no branch from a catalog that the daily function would not touch."""
    deployment = Scenario()
    deployment.ended()
    branch = deployment.ingestion(deployment.ended("shop/orders/b.csv", script=rejected)).branch
    upkeep(deployment.adapters)
    deployment.catalog.reset("main", list(deployment.catalog.log())[1].hash)
    deployment.clock.pass_(60)
    with pytest.raises(InDoubt, match="MAIN_SET_BACK"):
        list(expire.expired(deployment.adapters, 0, dry_run=False))
    assert [each.branches for each in expire.expired(deployment.adapters, 0, dry_run=True)]
    assert branch in deployment.catalog.references()


def test_what_failed_lately_is_deleted_by_consent_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Younger failures than the policy's are listed first; without consent all of them stay."""
    deployment = Scenario()
    branch = deployment.ingestion(deployment.ended(script=rejected)).branch
    deployment.clock.pass_(60)
    expire.agree(deployment.adapters, deployment.adapters.settings.keep_days)
    with pytest.raises(NotAgreed, match=r"Delete 1 failure .*--yes"):
        expire.agree(deployment.adapters, 0)
    assert f"{branch}: would be deleted" in capsys.readouterr().err
    assert branch in deployment.catalog.references()


def test_an_age_beyond_all_times_is_refused() -> None:
    """A number of days that no date goes back is a wrong option, and no traceback."""
    said = CliRunner().invoke(app, ["expire", "--older-than", "9999999999"])
    assert (said.exit_code, "--older-than" in said.output) == (2, True)
