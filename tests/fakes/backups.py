"""Backups of the catalog: what a restored one no longer has, and what others had changed then."""

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

from functions.model.ingestion import State
from functions.model.messages.announcement import Announcement
from functions.operations.recovery.realign import realign
from functions.operations.recovery.realign_plan import Kind
from lakegate.errors import LakegateError
from tests.fakes.catalog import CatalogBackup, FakeCatalog
from tests.fakes.deployment import Deployment
from tests.fakes.faults import ProcessDied
from tests.fakes.files_in_the_lake import deleted, listed
from tests.fakes.others import Row

REMARKS = {Kind.UNCLEAR, Kind.BRANCH_GONE}
_MOST_TRIES = 20


@dataclass(frozen=True)
class Backup:
    """The catalog at one time, with the rows that others had brought and taken by then.

    `files` are the addresses of the files that its references reached.
    """

    catalog: CatalogBackup
    files: frozenset[str]
    brought: Counter[Row]
    took: Counter[Row]
    withdrawn: Counter[str]

    @classmethod
    def of(cls, deployment: Deployment) -> "Backup":
        """Return a backup of the catalog as it is now."""
        others, catalog = deployment.others, deployment.catalog
        heads = catalog.references().values()
        files = frozenset[str]().union(*(listed(catalog, head) for head in heads))
        rows = copy(others.brought), copy(others.took), copy(others.withdrawn)
        return cls(catalog.backup(), files, *rows)

    def is_whole(self, deployment: Deployment) -> bool:
        """Return whether upkeep has deleted none of its files."""
        return not self.files & deleted(deployment)

    def restore(self, deployment: Deployment) -> None:
        """Restore the catalog; consumers have read of commits that it loses."""
        others, catalog = deployment.others, deployment.catalog
        before = set(catalog.branches(""))
        catalog.restore(self.catalog)
        others.brought, others.took = copy(self.brought), copy(self.took)
        others.withdrawn = copy(self.withdrawn)
        others.dropped |= before - set(catalog.branches(""))
        others.brought_back |= set(catalog.branches("")) - before
        forget_the_lost(deployment)


def forget_the_lost(deployment: Deployment) -> None:
    """Remove announcements of commits that main lost: there is nothing to check of them.

    Of others it may have lost the table's state that they told: then their own commit's is taken.
    """
    catalog, sent = deployment.catalog, deployment.announcements.sent
    log = [commit.hash for commit in catalog.log()][::-1]
    kept = [each for each in sent if each.state is not State.PUBLISHED or each.commit in log]
    sent[:] = [_corrected(catalog, log, each) if each.commit else each for each in kept]


def _corrected(catalog: FakeCatalog, log: Sequence[str], said: Announcement) -> Announcement:
    told = log[said.position - 1 : said.position]
    if told and catalog.metadata(told[0], said.table) == said.metadata_location:
        return said
    own = catalog.metadata(said.commit, said.table)
    return replace(said, position=log.index(said.commit) + 1, metadata_location=own)


def realigned(deployment: Deployment) -> list[Kind]:
    """Run the command until it ends; return what its last run did, in its order."""
    for _ in range(_MOST_TRIES):
        deployment.journal.part()
        try:
            done = realign(deployment.adapters).done
        except (LakegateError, ProcessDied):
            continue
        if not any(each.overtaken for each in done):
            return [kind for each in done for kind in each.decision.kinds if kind not in REMARKS]
    raise AssertionError("the command never ends")
