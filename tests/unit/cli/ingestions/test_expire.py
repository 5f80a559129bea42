"""`lakegate expire` says what it deletes."""

import pytest

from cli.ingestions import expire
from functions.operations.upkeep.expire import Expired


@pytest.mark.parametrize(("dry_run", "done"), [(True, "would be deleted"), (False, "deleted")])
def test_an_expiry_says_what_goes(dry_run: bool, done: str) -> None:
    """An expiry prints the branches; a dry run says that they stay."""
    expired = Expired("shop.orders", ("ingest/x",), "2026", "a" * 32)
    assert expire.line(expired, dry_run=dry_run) == f"ingest/x: {done}"


def test_an_expiry_that_failed_says_so() -> None:
    """A branch that could not be deleted is named with the reason."""
    expired = Expired("shop.orders", ("ingest/x",), "2026", left="S3 is away")
    assert expire.line(expired, dry_run=False) == ("ingest/x: not deleted completely: S3 is away")
