"""Branches on which behaviours are tried; nothing is ever written to main.

A branch of its own plays main for the product's own adapter. All branches have names under which no
ingestion, table or compaction looks for its own, and which upkeep deletes if a trial was cut off.
Tables on them have the metadata of real ones, so that upkeep can read what they reach meanwhile.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from functions.adapters.nessie import MAIN, Catalog
from functions.adapters.secrets import Secret
from functions.health.conformance.writer import ONE, THREE, TWO, Pointer, RestWriter
from lakegate.audit.audit_tables import QUARANTINE, RESULTS
from lakegate.errors import LakegateError
from lakegate.job.landing import WRITTEN_BY_JOBS, fresh_branch

NO_HASH = "0123456789abcdef" * 4
_FOLDER = "lakegate.probe"  # stands in the place of a table's name in the names of branches
_PAGE = 2  # few, so that few commits and branches take several pages


class Deviates(LakegateError):
    """Nessie behaves otherwise than Lakegate relies on."""


def same(actual: object, expected: object) -> None:
    """Raise Deviates unless what was found is what is expected."""
    if actual != expected:
        raise Deviates("NESSIE_DEVIATES", f"expected {expected!r}, found {actual!r}")


@contextmanager
def refused(expected: type[LakegateError], code: str) -> Iterator[None]:
    """Raise Deviates unless the block is refused with this error."""
    try:
        yield
    except expected as error:
        same(error.code, code)
    else:
        raise Deviates("NESSIE_DEVIATES", f"expected {code}, and it was not refused")


@dataclass(frozen=True)
class Scratch:
    """A branch that plays main, the adapter that merges into it, and another writer.

    `name` is part of the names of all its branches. `bases` are the hashes at which branches were
    created.
    """

    catalog: Catalog
    writer: RestWriter
    main: str
    name: str
    bases: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """Return a table that main has not."""
        return self.other("orders")

    def other(self, name: str) -> str:
        """Return another table that main has not."""
        return f"lakegate_probe_{self.name}.{name}"

    def branch(self, number: int = 1) -> str:
        """Return a branch's name, of the kind that jobs may write."""
        return f"{_prefixes(self.name)[0]}{number}"

    def fresh(self) -> str:
        """Return a branch's name, of the kind that only its creator may use."""
        return f"{_prefixes(self.name)[1]}1"

    def head(self) -> str:
        """Return the hash of main's newest commit."""
        return self.catalog.head(self.main)

    def on_main(self, table: str = "") -> str:
        """Return the state of a table on main, "" without the table."""
        return self.writer.read(self.main, table or self.table)

    def write(self, branch: str, state: str, table: str = "") -> str:
        """Commit a state of a table on a branch; return the branch's new head."""
        return self.writer.write(branch, table or self.table, state)

    def written(self, number: int, state: str = ONE, table: str = "") -> tuple[str, str]:
        """Return a branch off main on which a table was given a state, and the branch's head."""
        branch = self.branch(number)
        self.bases[branch] = self.catalog.create_branch(branch)
        return branch, self.write(branch, state, table)

    def merge(self, branch: str, at: str, base: str = "", **properties: str) -> str:
        """Merge what the branch gained since it was created, or since `base`."""
        base = base or self.bases.get(branch, NO_HASH)
        return self.catalog.merge(branch, at, base, f"Publish {branch}", properties or {"k": "v"})


@contextmanager
def scratch(uri: str, token: str | Secret) -> Iterator[tuple[Scratch, RestWriter]]:
    """Yield branches of the server at `uri` and their writer; delete all branches afterwards.

    The token is the publisher's.
    """
    name, real = secrets.token_hex(4), Catalog(uri, token)
    main = f"{_prefixes(name)[1]}main"
    try:
        real.create_branch(main)
        writer = RestWriter(real, uri, token, _states(real))
        yield Scratch(Catalog(uri, token, main, _PAGE), writer, main, name), writer
    finally:
        for each in real.branches(*_prefixes(name)):
            real.delete_branch(each)


def _prefixes(name: str) -> tuple[str, str]:
    """Return how the names of all branches begin."""
    return f"{WRITTEN_BY_JOBS}{_FOLDER}/{name}.", fresh_branch(_FOLDER, name, "")


def _states(catalog: Catalog) -> dict[str, Pointer]:
    """Return states by two tables of main's metadata; nothing reads that of a main without them."""
    head = catalog.head(MAIN)
    results, quarantine = (catalog.metadata(head, each.name) for each in (RESULTS, QUARANTINE))
    return {
        ONE: Pointer(results or "s3://none/results", 1),
        TWO: Pointer(quarantine or "s3://none/quarantine", 2),
        THREE: Pointer(results or "s3://none/results", 3),
    }
