"""Judge landed files of a table by another contract, and compare with their recorded verdicts.

Nothing is published or stored, but for a temporary copy of one file at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from access.contract.local_audit import Judge
from access.evidence.failing_rows import concealment
from access.ingestions.find import Wanted, newest
from access.ingestions.shown_report import Concealment
from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing, Overwritten, contract_key
from functions.model.ingestion import Ingestion, State
from functions.pipeline.outcome.reports import report_of
from lakegate.audit.report import AuditReport, Status, Verdict
from lakegate.contract.checks import Check, Metric, Severity
from lakegate.contract.columns import Column
from lakegate.contract.model import Contract, ContractInvalid
from lakegate.errors import Permanent
from lakegate.job.landing import LandedObject

_GONE = "the landed file is gone"
_AGED = "measures the age of data when a file lands"


@dataclass(frozen=True)
class Backtested:
    """A landed file, with its recorded verdict and the one by another contract.

    `name` is its key; for a change, what it changed. `report` is the audit report by that contract;
    `rows_before` and `rows` pass by the two verdicts, whatever people decided. `unjudged` says why
    the verdicts cannot be compared, "" if they can.
    """

    ingestion: str
    name: str
    version: str
    recorded: Verdict | None = None
    rows_before: int = 0
    report: AuditReport | None = field(default=None, repr=False)
    unjudged: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """Return the verdict by the other contract, None if it is unknown."""
        return self.report.verdict if self.report and not self.unjudged else None

    @property
    def rows(self) -> int:
        """Return how many rows would pass by the other contract."""
        return _published(self.report) if self.report and not self.unjudged else 0

    @property
    def is_changed(self) -> bool:
        """Return whether the other contract changes the verdict, or which rows are published."""
        then, now = (self.recorded, self.rows_before), (self.verdict, self.rows)
        return not self.unjudged and then != now

    @property
    def rows_changed(self) -> int:
        """Return how many rows would pass that did not, or the other way round."""
        return abs(self.rows - self.rows_before) if self.is_changed else 0

    @property
    def would_fail(self) -> bool:
        """Return whether the file passed, and would not by the other contract."""
        has_passed = self.recorded is Verdict.PASSED
        return self.is_changed and has_passed and self.verdict is not Verdict.PASSED


@dataclass(frozen=True)
class Backtest:
    """The files, newest landing first; there are `more` than the limit allows."""

    table: str
    files: tuple[Backtested, ...]
    more: bool = False

    @property
    def changed(self) -> tuple[Backtested, ...]:
        """Return the files about which the other contract decides otherwise."""
        return tuple(each for each in self.files if each.is_changed)

    @property
    def unjudged(self) -> tuple[Backtested, ...]:
        """Return what could not be compared."""
        return tuple(each for each in self.files if each.unjudged)


@dataclass(frozen=True)
class Request:
    """The contract to try, on what landed for its table `since` then (ISO 8601, UTC).

    At most `limit` ingestions are looked at, 0 for all.
    """

    contract: Contract
    since: str
    limit: int


def backtest(
    adapters: Adapters, request: Request, judge: Judge, tell: Callable[[str], None] = lambda _: None
) -> Backtest:
    """Return what the files of a request would become; `tell` gets each key before it is judged.

    Ignored files are left out, and changes, which are no files. What the contract in force hides,
    the reports hide too. Raises LakegateError for a fault that is not a file's.
    """
    contract = request.contract
    hidden = concealment(adapters, contract, contract_key(contract.table))
    wanted = Wanted(contract.table, None, request.since, request.limit)
    matches = newest(adapters.ledger, wanted, adapters.now())
    judged_by, earlier = _for_trial(contract, hidden), cache(partial(_contract, adapters))
    trial = _Trial(adapters, contract, judged_by, judge, tell, earlier)
    files = chain.from_iterable(map(trial.of, matches.ingestions))
    return Backtest(contract.table, tuple(files), matches.more)


def _for_trial(contract: Contract, hidden: Concealment) -> Contract:
    """Return the contract without the checks that time decides, and hiding what is hidden now."""

    def masked(columns: Sequence[Column]) -> tuple[Column, ...]:
        hides = hidden.columns
        return tuple(replace(c, sensitive=c.sensitive or c.top.lower() in hides) for c in columns)

    return replace(
        contract,
        columns=masked(contract.columns),
        nested=masked(contract.nested),
        allow_samples=not hidden.every,
        checks=tuple(check for check in contract.checks if not _is_timed(check)),
    )


@dataclass(frozen=True)
class _Recorded:
    """One file of an ingestion, its last audit's report, and key and version of the contract.

    Without a `report` the file was errored before its audit.
    """

    landed: LandedObject
    report: AuditReport | None
    contract: tuple[str, str]


@dataclass(frozen=True)
class _Trial:
    """The other contract as it is given, and as files are judged by it.

    `earlier` returns a contract of the lake by key and version, None if it is lost.
    """

    adapters: Adapters
    contract: Contract
    judged_by: Contract
    judge: Judge
    tell: Callable[[str], None]
    earlier: Callable[[str, str], Contract | None]

    def of(self, ingestion: Ingestion) -> Iterator[Backtested]:
        """Yield the files of an ingestion that are for the contract's table."""
        if ingestion.change or ingestion.state is State.IGNORED:
            return
        try:
            for recorded in _recorded(self.adapters, ingestion, self.contract.table):
                yield self._file(ingestion.id, recorded)
        except Permanent as error:
            landed = ingestion.landed
            yield Backtested(ingestion.id, landed.key, landed.version, unjudged=error.message)

    def _file(self, ingestion: str, recorded: _Recorded) -> Backtested:
        landed, before = recorded.landed, recorded.report
        file = Backtested(
            ingestion,
            landed.key,
            landed.version,
            before.verdict if before else Verdict.ERRORED,
            _published(before) if before else 0,
        )
        self.tell(landed.key)
        try:
            report = replace(self._report(landed), source=landed)
        except (Missing, Overwritten):
            return replace(file, unjudged=_GONE)
        except OSError as error:
            return replace(file, unjudged=f"it cannot be copied to this machine: {error.strerror}")
        return replace(file, report=report, unjudged=self._left_open(report, recorded))

    def _report(self, landed: LandedObject) -> AuditReport:
        with TemporaryDirectory(prefix="lakegate-") as folder:
            copy = Path(folder, "landed")
            self.adapters.landing.download(landed, copy)
            return self.judge(self.judged_by, copy)

    def _left_open(self, report: AuditReport, recorded: _Recorded) -> str:
        """Return which checks would have to pass too and need more than the file; "" for none.

        Those that the file's own audit let pass need no repetition.
        """
        if report.verdict is not Verdict.PASSED:
            return ""
        reasons = {each.id: each.message for each in report.checks if each.status is Status.SKIPPED}
        reasons |= {check.id: _AGED for check in self.contract.checks if _is_timed(check)}
        met = self._met(recorded)
        blocking = (check for check in self.contract.checks if check.severity is Severity.ERROR)
        open_ = (check.id for check in blocking if check.id in reasons and check not in met)
        return "; ".join(f"{id_} {reasons[id_]}" for id_ in open_)

    def _met(self, recorded: _Recorded) -> list[Check]:
        """Return the checks that did not fail in a file's recorded audit."""
        contract = self.earlier(*recorded.contract)
        if recorded.report is None or contract is None:
            return []
        let_pass = {each.id for each in recorded.report.checks}
        let_pass -= {each.id for each in recorded.report.failed}
        return [check for check in contract.checks if check.id in let_pass]


def _is_timed(check: Check) -> bool:
    return check.basis.metric is Metric.AGE


def _published(report: AuditReport) -> int:
    """Return how many rows an audit lets through."""
    return report.rows_read - report.rows_rejected if report.verdict is Verdict.PASSED else 0


def _recorded(adapters: Adapters, ingestion: Ingestion, table: str) -> list[_Recorded]:
    """Return the files of an ingestion for a table. Raises Permanent if they have no verdict."""
    if not ingestion.ended:
        raise Permanent("IN_FLIGHT", f"it is {ingestion.state}, and has no verdict yet")
    report = report_of(adapters, ingestion) if ingestion.report_key else None
    if report is None and ingestion.state is not State.ERRORED:
        raise Permanent("NO_REPORT", "its audit report is gone")
    parts = ingestion.parts
    landed = [part.landed(ingestion.landed) for part in parts] or [ingestion.landed]
    tables = [part.table for part in parts] or [ingestion.table]
    reports: Sequence[AuditReport | None] = report.singles if report else ()
    if len(reports) != len(landed):  # a batch that was errored as a whole
        reports = [None] * len(landed)
    files = map(_Recorded, landed, reports, ingestion.contracts)
    return [file for of, file in zip(tables, files, strict=True) if of == table]


def _contract(adapters: Adapters, key: str, version: str) -> Contract | None:
    """Return the contract of an audit, None if it is lost."""
    try:
        return adapters.lake.contract_at(key, version).contract if key else None
    except (Missing, ContractInvalid):
        return None
