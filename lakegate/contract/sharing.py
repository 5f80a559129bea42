"""Ways to ingest the files of a contract: in a group, alone in a shared run, in a run of its own.

A group is audited and appended together, by Arrow. All files of a group have one contract.
"""

from itertools import chain

from lakegate.contract.checks import Check, Metric
from lakegate.contract.model import Contract
from lakegate.contract.reading.sql import names_all_columns
from lakegate.contract.rules import Condition

_FORMATS = ("parquet", "csv", "tsv", "json")
_ALONE = {
    Metric.ORPHAN: "looks its keys up in a table",
    Metric.QUERY: "is a query",
    Metric.CONTROL: "reads a control file",
}


def why_alone(contract: Contract) -> str:
    """Return why each file of a contract is audited and written alone; "" if groups are."""
    encoding = contract.options.get("encoding", "UTF-8")
    reasons = {
        "its transform reads one file at a time": bool(contract.transform),
        "its files replace partitions one after the other": contract.write_mode.overwrites,
        "a file may add columns to its table": contract.extra_columns == "add",
        "a newer file replaces the rows of an older one": contract.on_new_version == "replace",
        "a file with known bytes waits on a branch of its own": contract.on_duplicate == "hold",
        f"files of the format {contract.format} are opened one at a time": (
            contract.format not in _FORMATS
        ),
        f"files in {encoding} are read one at a time": encoding.startswith("UTF-16"),
        "its contract has write: spark": contract.write == "spark",
    }
    by_check = ((check.id, _why(check)) for check in contract.checks)
    needs = (f"its check {id_} {why}" for id_, why in by_check if why)
    return next(chain((why for why, holds in reasons.items() if holds), needs), "")


def comes_in_turns(contract: Contract) -> bool:
    """Return if small files of a contract that follow each other enter the table together."""
    in_order = contract.write_mode.merges or contract.checks_whole_table
    return in_order and not why_alone(contract)


def why_own_run(contract: Contract) -> str:
    """Return why each file of a contract has a job run of its own; "" if small ones share runs."""
    return "its isolation is own" if contract.isolation == "own" else ""


def _why(check: Check) -> str:
    """Return what a check needs besides its file, or the keys of its table; "" for nothing."""
    if check.checks_whole_table and not check.is_key_of_table:
        return "depends on the table's existing rows"
    own = check.basis.rule.sql if isinstance(check.basis.rule, Condition) else ""
    if any(map(names_all_columns, (own, check.where))):
        return "names all columns by *"
    return _ALONE.get(check.basis.metric, "")
