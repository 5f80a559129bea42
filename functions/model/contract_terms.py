"""The terms of a contract that an ingestion keeps."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakegate.job.landing import BATCH

if TYPE_CHECKING:  # it takes a quarter of a second, which on_action does not have
    from lakegate.contract.model import Contract


@dataclass(frozen=True)
class ContractTerms:
    """The terms of a contract, as they were when an ingestion's branch was created.

    `table` is where its rows go; for a batch it is BATCH, which is no table: its files have
    contracts of their own. `contract_key` and `contract_version` name the contract's text, whose
    digest is `contract_sha256`, "" where it is unknown.
    `requirements_digest` is the digest of what it requires of the rows. Alerts go to `channel` and
    name the `owner`. `on_duplicate`, `on_new_version` and `isolation` are the contract's settings
    of those names; `write_mode` and `latest_by` say how a file's rows enter the table.
    `checks_whole_table` says that it has checks of the whole table, `reads_others` that the job
    reads other tables than its own.
    """

    table: str = ""
    contract_key: str = ""
    contract_version: str = ""
    contract_sha256: str = ""
    requirements_digest: str = ""
    channel: str = ""
    owner: str = ""
    on_duplicate: str = "publish"
    on_new_version: str = "add"
    isolation: str = "shared"
    write_mode: str = "append"
    latest_by: str = ""
    checks_whole_table: bool = False
    reads_others: bool = True

    @classmethod
    def of(
        cls, contract: "Contract", key: str, version: str, *, is_change: bool
    ) -> "ContractTerms":
        """Return the terms for a file, or for a change, under one version of a contract."""
        return cls(
            table=contract.table,
            contract_key=key,
            contract_version=version,
            contract_sha256=contract.sha256,
            requirements_digest=contract.requirements_digest,
            channel=contract.channel,
            owner=contract.owner,
            on_duplicate="publish" if is_change else contract.on_duplicate,
            on_new_version="add" if is_change else contract.on_new_version,
            isolation=contract.isolation,
            write_mode="append" if is_change else contract.write_mode.name,
            latest_by="" if is_change else contract.write_mode.latest_by,
            checks_whole_table=contract.checks_whole_table,
            reads_others=is_change or contract.reads_others,
        )

    @classmethod
    def of_batch(cls, contracts: Sequence["Contract"]) -> "ContractTerms":
        """Return what the contracts of a batch's files require together."""
        requirements = json.dumps(
            sorted((each.table, each.requirements_digest) for each in contracts)
        )
        return cls(
            table=BATCH,
            requirements_digest=hashlib.sha256(requirements.encode()).hexdigest()[:32],
            channel=next((each.channel for each in contracts if each.channel), ""),
            owner=next((each.owner for each in contracts if each.owner), ""),
            checks_whole_table=any(each.checks_whole_table for each in contracts),
            reads_others=any(each.reads_others for each in contracts),
        )

    @property
    def contract(self) -> tuple[str, str]:
        """Return key and version of the contract's text."""
        return self.contract_key, self.contract_version

    @property
    def replaces(self) -> bool:
        """Return whether a file's rows replace those of earlier versions of its key."""
        return self.on_new_version == "replace"

    @property
    def is_ordered(self) -> bool:
        """Return whether a file may remove rows of others: their order decides what main has."""
        return self.write_mode != "append"

    @property
    def follows_landing(self) -> bool:
        """Return whether only the order in which files landed decides between their rows."""
        return self.is_ordered and not self.latest_by
