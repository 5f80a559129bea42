"""The one entry point argument of a job run."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from lakegate.job.batch import BatchFile
from lakegate.job.landing import LandedObject, run_name
from lakegate.limits import DEFAULTS, Limits
from lakegate.text import load_json

# The files of a release of the job's code.
JOB_FILES = (MAIN, PACKAGES, AVRO, LIBRARIES) = (
    *("main.py", "lakegate_job.zip", "spark-avro.jar", "libraries.zip"),
)


@dataclass(frozen=True)
class JobSpec:
    """The input of a job run. It holds no secret, only a secret's name.

    `base_hash` is the Nessie hash at which the branch was created: a rerun resets the branch to it.
    `contract_version` is the S3 version of the contract's text in the lake bucket.

    With `change`, the landed object is the text of a change of the table. If that retracts a file,
    `earlier_report` is the key of the file's report.

    With `parts`, it is a batch: the landed object is its manifest, `table` stands for all tables,
    and each part has its own contract.

    With `reaudit_base`, the file is on the branch already, at `audited_hash`, and was audited
    against main at that hash: `earlier_report` is the key of that audit's report. Only checks that
    depend on the table run again.

    With `null_unreadable`, rows with unparseable cells go to the table as well, with null for each
    such cell; else they are quarantined.

    `timeout_minutes` is the limit of the run. `reads_others` says that it reads other tables than
    its own, `small` that small workers are enough.

    With `compact`, the run ingests nothing: it compacts the table on its branch. With an
    `audited_hash` as well it only compares the table at that hash with its state at `base_hash`.

    With `probe`, the run ingests nothing: it measures its runtime and writes the findings to
    `report_key`. It is `default`, or the Spark master to use.
    """

    ingestion: str
    attempt: int
    landed: LandedObject
    table: str
    branch: str
    base_hash: str
    lake_bucket: str
    contract_key: str
    contract_version: str
    report_key: str
    nessie_uri: str
    token_secret: str
    change: bool = False
    reads_others: bool = False
    small: bool = False
    compact: bool = False
    probe: str = ""
    reaudit_base: str = ""
    audited_hash: str = ""
    earlier_report: str = ""
    null_unreadable: bool = False
    timeout_minutes: int = 0
    limits: Limits = DEFAULTS
    parts: tuple[BatchFile, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of its job run, which no other run has."""
        return run_name(self.ingestion, self.attempt)

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what files that are audited together have in common: how each of them is read."""
        contract = (self.table, self.contract_key, self.contract_version)
        return (*contract, self.limits, self.null_unreadable)

    def part_spec(self, part: BatchFile, base_hash: str) -> "JobSpec":
        """Return the input for one file of a batch whose branch stands at `base_hash`."""
        return dataclasses.replace(
            self,
            landed=part.landed(self.landed),
            table=part.table,
            base_hash=base_hash,
            contract_key=part.contract_key,
            contract_version=part.contract_version,
            parts=(),
        )

    def to_argument(self) -> str:
        """Return this value as one JSON text; keys with any character in them survive unchanged."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_argument(cls, argument: str) -> "JobSpec":
        """Return the value that `to_argument` wrote. Fields of a newer version are ignored.

        Raises ValueError or TypeError for any other text.
        """
        fields = _known(cls, load_json(argument))
        landed = LandedObject(**_known(LandedObject, fields.pop("landed", {})))
        limits = Limits(**_known(Limits, fields.pop("limits", {})))
        parts = tuple(BatchFile(**_known(BatchFile, part)) for part in fields.pop("parts", ()))
        return cls(landed=landed, limits=limits, parts=parts, **fields)


def _known(cls: type, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"not a {cls.__name__}: {given!r}")
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in given.items() if name in names}
