"""Find what is named as a compaction, and was not begun by Lakegate."""

from collections.abc import Iterable, Iterator

from functions.adapters.all import Adapters
from functions.model.commits import Commit
from functions.model.merge_commit import UPKEEP as PROPERTY
from functions.operations.compaction.begun import branch_of, strangers
from functions.operations.reconcile.row_balance import Finding
from lakegate.job.upkeep import UPKEEP


def foreign_branches(adapters: Adapters, table: str = "") -> Iterator[Finding]:
    """Find the branches of compactions, of one table or all, that Lakegate did not begin."""
    for name in strangers(adapters):
        if table and not name.startswith(f"{UPKEEP}{table}/"):
            continue
        message = (
            f"Lakegate did not begin the branch {name}, so it is never published. Find out who "
            "made it; the function `expire` deletes it after KeepDays. `lakegate ledger realign`, "
            "if Nessie was restored, and `lakegate ledger rebuild`, if the ledger was lost, delete "
            "it at once"
        )
        yield Finding("FOREIGN_COMPACTION", message)


def foreign_commits(adapters: Adapters, commits: Iterable[Commit]) -> Iterator[Finding]:
    """Find the commits on main that call themselves compactions, and that the ledger never meant.

    Of those before it knew every compaction nothing can be said.
    """
    named = [each for each in commits if PROPERTY in each.properties]
    since = adapters.ledger.compactions().since if named else ""
    for commit in named:
        is_young = bool(since) and commit.at >= since
        if is_young and not adapters.ledger.was_compacted(branch_of(commit)):
            message = (
                f"commit {commit.hash} calls itself a compaction, and Lakegate did not begin it: "
                "find out who has the publisher's token, and compare the table's rows before and "
                "after it"
            )
            yield Finding("FOREIGN_COMPACTION", message, commit=commit.hash)
