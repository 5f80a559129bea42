"""`lakegate contract check`: check contract files, and say what is wrong with which line."""

import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from access.contract.check import Checked, checked, clash
from access.deployment.checkout import ROOT
from cli.console import json_output, terminal
from cli.console.options import AsJson
from cli.contract import ci_output
from cli.contract.ci_output import AsFormat, Format
from lakegate.errors import LakegateError
from lakegate.limits import Limits

# Those of a deployment: the user's own come first. The local stack has no smoke test.
CONTRACTS = (ROOT / "contracts", ROOT / "infra" / "smoke")


def check(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Contract files, or directories of them.", exists=True),
    ],
    as_json: AsJson = False,
    as_format: AsFormat = Format.TEXT,
) -> None:
    """Check contracts against the standard and Lakegate's rules; exits 1 on problems.

    Reads local files only.
    """
    ci_output.refuse_both(as_format, as_json=as_json)
    limits = Limits.of(os.environ)
    contracts = checked_files(paths, limits)
    clashing = clash(contracts)
    if as_json or as_format is not Format.TEXT:
        results = ci_output.contract_results(contracts, clashing)
        document = json_output.text(_document(contracts, clashing))
        typer.echo(document if as_json else ci_output.text(results, as_format))
        raise typer.Exit(1 if clashing or any(each.refusal for each in contracts) else 0)
    for each in contracts:
        if each.contract:
            many = len(each.contract.checks)
            terminal.out().print(f"{each.file}: {each.contract.table}, {many} checks")
    for hint in dict.fromkeys(
        f"{each.file}: hint: {hint}" for each in contracts for hint in each.hints
    ):
        terminal.out().print(hint, soft_wrap=True)  # one of the whole contract is one of each table
    raise_refusals(contracts)
    if clashing:
        raise clashing


def refuse_invalid(paths: Iterable[Path], limits: Limits) -> None:
    """Raise LakegateError with every problem in every contract, or why they clash."""
    contracts = checked_files(paths, limits)
    raise_refusals(contracts)
    if clashing := clash(contracts):
        raise clashing


def checked_files(paths: Iterable[Path], limits: Limits) -> list[Checked]:
    """Return the check of each table in files and in those of directories. Raises LakegateError."""
    return [each for file in contract_files(paths) for each in checked(file, limits)]


def contract_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and the *.yaml and *.yml files in directories, each once.

    Raises LakegateError NO_CONTRACTS for a directory without any.
    """
    files: list[Path] = []
    for path in paths:
        within = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
        if not within:
            raise LakegateError("NO_CONTRACTS", f"no *.yaml file in {path}")
        files += within
    return list(dict.fromkeys(files))


def raise_refusals(contracts: Iterable[Checked]) -> None:
    """Raise LakegateError with all reasons why contracts are refused."""
    refusals = [each.refusal for each in contracts if each.refusal]
    if refusals:
        # a problem of the whole contract is one of each table
        raise LakegateError("CONTRACT_INVALID", "\n".join(dict.fromkeys(refusals)))


def _document(contracts: Iterable[Checked], clashing: LakegateError | None) -> dict[str, Any]:
    return {
        "contracts": [_one(each) for each in contracts],
        "clash": clashing.message if clashing else None,
    }


def _one(each: Checked) -> dict[str, Any]:
    return {
        "file": str(each.file),
        "table": each.contract.table if each.contract else None,
        "checks": [check.id for check in each.contract.checks] if each.contract else [],
        "problems": [asdict(problem) for problem in each.problems],
        "hints": [asdict(hint) for hint in each.hints],
    }
