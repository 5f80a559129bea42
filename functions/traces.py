"""What ingestions leave behind outside the ledger: job runs, audit reports and branches."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from functions.job_run import JobRun
from functions.world import World
from lakegate.landing import (
    ID_PART,
    LandedObject,
    ingestion_id,
    parse_branch_name,
    parse_report_key,
    parse_run_name,
)

_T = TypeVar("_T")
_ByAttempt = Mapping[int, _T]


@dataclass(frozen=True)
class Trace:
    """What is left of one ingestion: job runs, keys of reports and branches, each by attempt.

    `landed` is None where its landed object is gone.
    """

    landed: LandedObject | None = None
    runs: _ByAttempt[JobRun] = field(default_factory=dict)
    reports: _ByAttempt[str] = field(default_factory=dict)
    branches: _ByAttempt[str] = field(default_factory=dict)

    @property
    def attempt(self) -> int:
        """The newest attempt of which something is left."""
        return max({*self.runs, *self.reports, *self.branches}, default=0)

    @property
    def tables(self) -> set[str]:
        """The tables that the ingestion may have written to."""
        of_reports = {parse_report_key(key)[0] for key in self.reports.values()}
        return of_reports | {parse_branch_name(name)[0] for name in self.branches.values()}


def traces(world: World, landed: Iterable[LandedObject], since: str = "") -> dict[str, Trace]:
    """What is left of ingestions, by their ids; those without a trace are not in it.

    `landed` are the landed objects to look for. A branch names only a part of the id: it is found
    only where its object is among them. Job runs are looked for from the time `since` on.
    """
    runs = _by_attempt(world.jobs.runs(since), lambda run: parse_run_name(run.name))
    reports = _by_attempt(world.lake.reports(), lambda key: parse_report_key(key)[1:])
    branches = _by_attempt(
        world.catalog.branches("ingest/"), lambda name: parse_branch_name(name)[1:]
    )
    objects = {
        id_: each
        for each in landed
        if (id_ := ingestion_id(each)) in runs or id_ in reports or id_[:ID_PART] in branches
    }
    return {
        id_: Trace(
            landed=objects.get(id_),
            runs=runs.get(id_, {}),
            reports=reports.get(id_, {}),
            branches=branches.get(id_[:ID_PART], {}),
        )
        for id_ in {*runs, *reports, *objects}
    }


def _by_attempt(
    found: Iterable[_T], parse: Callable[[_T], tuple[str, int]]
) -> dict[str, dict[int, _T]]:
    made: defaultdict[str, dict[int, _T]] = defaultdict(dict)
    for each in found:
        try:
            id_, attempt = parse(each)
        except ValueError:
            continue  # not one of ours
        made[id_][attempt] = each
    return dict(made)
