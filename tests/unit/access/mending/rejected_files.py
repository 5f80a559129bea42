"""A rejected file in a deployment of fakes, whose broken rows a test names itself."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from access.mending.mend import Mended, Written, mend, write_broken
from functions.model.ingestion import Ingestion
from lakegate.audit.broken_rows import BrokenRows
from lakegate.audit.report import READABLE, AuditReport, CheckResult
from lakegate.contract.model import Contract
from lakegate.job.landing import LandedObject
from lakegate.limits import Limits
from tests.fakes.deployment import ORDERS
from tests.fakes.job import FAILED, Script, rejected
from tests.fakes.scenario import Scenario

NAME = "shop/orders/monday.csv"
NULL = replace(FAILED, id="id.nullValues")
UNREADABLE = replace(FAILED, id=READABLE)
OTHER = replace(FAILED, id="rows", metric="rowCount", found="1 row", expected="at least 2 rows")


def failing(*failed: CheckResult) -> Script:
    """Return the script of a run that rejects a file by these checks."""

    def run(report: AuditReport) -> AuditReport:
        return replace(rejected(report), checks=failed)

    return run


@dataclass
class Rejected:
    """A rejected file with these bytes; `broken` are its broken rows, by their number."""

    deployment: Scenario
    body: bytes
    broken: Mapping[int, str]
    folder: Path
    unit: str = "line"
    spans: bool = False
    settings: str = "- {property: format, value: csv}"
    columns: str = ""
    key: str = NAME
    of_id: str = "required: true"
    failed: tuple[CheckResult, ...] = (NULL, UNREADABLE)
    meanwhile: Callable[[], object] = lambda: None
    asked: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    landed: LandedObject = field(init=False)

    def __post_init__(self) -> None:
        orders = ORDERS.replace("required: true", self.of_id)
        text = f"{orders}{self.columns}customProperties:\n  {self.settings}\n"
        self.deployment.upload_contract(text)
        ended = self.deployment.ended(self.key, self.body, failing(*self.failed))
        self.landed = ended.landed

    @property
    def ingestion(self) -> Ingestion:
        return self.deployment.ingestion(self.landed)

    def find(
        self, contract: Contract, file: Path, failed: Collection[str], limits: Limits
    ) -> BrokenRows:
        """Return the broken rows, as the judge on this machine does."""
        self.asked.append((contract.table, frozenset(failed)))
        assert file.read_bytes() == self.body
        self.meanwhile()
        reasons = {number: (reason,) for number, reason in self.broken.items()}
        return BrokenRows(self.unit, reasons, self.spans)

    def write(self, name: str = "broken") -> tuple[Written, bytes]:
        """Write the broken rows; return what is said of them, and the file."""
        out = self.folder / name
        done = write_broken(self.deployment.adapters, self.ingestion, out, self.find)
        return done, out.read_bytes()

    def mend(self, corrected: bytes, name: str = "fixed.csv", **how: Any) -> tuple[Mended, bytes]:
        """Land the file with corrected rows; return what is said of it, and the landed bytes."""
        file = self.folder / name
        file.write_bytes(corrected)
        take = partial(mend, self.deployment.adapters, self.ingestion, file, self.find)
        done = take(**how)
        copy = self.folder / "copy"
        self.deployment.landing.download(done.ingestion.landed, copy)
        return done, copy.read_bytes()
