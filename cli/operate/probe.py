"""`lakegate probe`: try Nessie, and measure the runtime of job runs: releases of both differ."""

import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer
from rich.table import Table

from access.deployment.checkout import checkout
from access.deployment.choice import find
from cli.console import terminal
from cli.console.terminal import progress_printer
from cli.local.stack import Tell
from cli.operate.conformance import require_conformance
from functions.adapters.all import Adapters
from functions.model.commits import MAIN
from functions.settings import Settings
from infra import checkup
from infra.package import job_versions
from lakegate.errors import LakegateError
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject
from lakegate.job.probe import DEFAULT, FORMAT, LOCAL_MASTER, probe_key, problems

_OUTPUT = Path("probe-1.json")
_PAUSE = 1.0
_NO_FILE = LandedObject("", "", "", "", 0)


@dataclass(frozen=True)
class Probe:
    """One run of the probe: its findings, and the job run as EMR Serverless describes it."""

    master: str
    findings: Mapping[str, Any]
    run: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return what may be sent to strangers: no account, bucket or address."""
        created = self.run["createdAt"].timestamp()
        seconds = {"created_to_first_line": round(self.findings["began"] - created, 1)}
        known = {k: v for k, v in self.findings.items() if k != "began"}
        billed = self.run.get("billedResourceUtilization", {})
        return {"asked_for": self.master, "seconds": seconds, "billed": billed, **known}


def probe(
    context: typer.Context,
    output: Annotated[Path, typer.Option(help="File to write the findings to.")] = _OUTPUT,
    seconds: Annotated[float, typer.Option("--timeout", help="Seconds to wait for a run.")] = 900,
) -> None:
    """Try what is relied on in Nessie, and measure the job runs' runtime; exits 1 on problems."""
    versions = job_versions(checkout())  # what would stop it minutes later
    deployment = find(context.obj)
    tell = progress_printer()
    client = boto3.client("lambda", config=checkup.PATIENT)
    many = require_conformance(client, f"lakegate-{os.environ['LAKEGATE_STAGE']}")
    tell(f"Nessie is as Lakegate relies on in {many} points")
    adapters = deployment.adapters()
    probes = [measure(adapters, m, seconds, tell) for m in (DEFAULT, LOCAL_MASTER)]
    document = {"format": FORMAT, "release": probes[0].run["releaseLabel"]}
    document["runs"] = [each.document() for each in probes]
    for each in document["runs"]:
        terminal.out().print(_table(each))
    save(document, output)
    terminal.out().print(f"{output} has all findings and names no account: you may send it.")
    require_sound(probes[0], versions)


def save(document: Mapping[str, Any], output: Path) -> None:
    """Write the findings to a file. Raises LakegateError CANNOT_WRITE."""
    try:
        output.write_text(json.dumps(document, indent=2) + "\n")
    except OSError as error:
        message = f"cannot write {output}: {error.strerror}"
        raise LakegateError("CANNOT_WRITE", f"{message}\nGive another --output.") from error


def measure(adapters: Adapters, master: str, seconds: float, tell: Tell) -> Probe:
    """Run the probe with a Spark master and return what it found.

    Raises LakegateError PROBE_FAILED if the run leaves no findings, TIMED_OUT after `seconds`.
    """
    spec = _spec(adapters.settings, master)
    run = adapters.jobs.start(spec)
    tell(f"probe: job run {run} measures its runtime (Spark master: {master})")
    deadline = time.monotonic() + seconds
    while not (job_run := adapters.jobs.get(run)).has_ended:
        if time.monotonic() > deadline:
            raise LakegateError("TIMED_OUT", f"the job run {run} is still {job_run.state}")
        time.sleep(_PAUSE)
    described = adapters.jobs.describe(run)
    return Probe(master, _findings(spec, job_run.details), described)


def require_sound(measured: Probe, versions: Mapping[str, str]) -> None:
    """Raise LakegateError PROBE_FAILED with all problems that would make every job fail.

    `versions` are those of the libraries that the job takes along, and of their Python.
    """
    if wrong := list(problems(measured.findings, versions)):
        message = "jobs cannot work on this runtime:\n    " + "\n    ".join(wrong)
        raise LakegateError("PROBE_FAILED", message)


def _findings(spec: JobSpec, details: str) -> dict[str, Any]:
    client = boto3.client("s3")
    try:
        body = client.get_object(Bucket=spec.lake_bucket, Key=spec.report_key)["Body"].read()
    except client.exceptions.NoSuchKey as error:
        message = f"the probe's job run left no findings: {details}; its log says why"
        raise LakegateError("PROBE_FAILED", message) from error
    return dict(json.loads(body))


def _spec(settings: Settings, master: str) -> JobSpec:
    """Return the input of the probe's run; its name is no ingestion's, so nothing follows it."""
    id_ = f"probe-{uuid.uuid4().hex[:12]}"
    return JobSpec(
        ingestion=id_,
        attempt=1,
        landed=_NO_FILE,
        table="lakegate.probe",
        branch=MAIN,
        base_hash="",
        lake_bucket=settings.lake_bucket,
        contract_key="",
        contract_version="",
        report_key=probe_key(id_),
        nessie_uri=settings.nessie_uri,
        token_secret=settings.job_token_secret,
        small=True,
        probe=master,
    )


def _table(document: Mapping[str, Any]) -> Table:
    """Return the findings, one per line; packages and jars are in the file alone."""
    shown = [("Spark master asked for", document["asked_for"])]
    for name, values in document.items():
        if isinstance(values, Mapping):
            shown += [
                (f"{name} {key}".replace("_", " "), str(value))
                for key, value in values.items()
                if not isinstance(value, list | dict)
            ]
    return terminal.facts(shown)
