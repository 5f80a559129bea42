"""The smoke test: tiny files that must end as they should after a deployment."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from access.ingestions.follow import TrackedIngestion, dropped, finished, follow
from cli.console import terminal
from cli.ingestions.progress import show_progress
from cli.ingestions.wait import explain
from functions.adapters.all import Adapters
from functions.model.ingestion import State
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.job.landing import BATCHES, MANIFEST, LandedObject

TABLE = "smoke.deployments"


@dataclass(frozen=True)
class Sample:
    """A file of the smoke test: how it must end, and what lands, in this order.

    `what` names it in messages; the last of `objects`, contents by keys, is the one that is
    followed.
    """

    what: str
    state: State
    objects: dict[str, str]

    @property
    def key(self) -> str:
        """Return the key of the object that is followed."""
        return list(self.objects)[-1]


def smoke(
    adapters: Adapters, deployed_at: datetime, job_release: str, seconds: float
) -> list[TrackedIngestion]:
    """Drop the files of a deployment, unless an earlier try did, and wait until they are done.

    A file that is rejected must be told to its owners, too. Its correction is the second file of a
    shared run; it also settles the rejected one. Raises LakegateError: TIMED_OUT with the files'
    states after `seconds`, or SMOKE_FAILED with the first that ended otherwise than it must.
    """
    deadline = time.monotonic() + seconds
    batch, first, bad, correction = samples(deployed_at, job_release)
    done: list[TrackedIngestion] = []
    # The batch comes first: a shared run that waits for more files may leave no room for it.
    for together in ([batch], [first, bad], [correction]):
        done += _ended(adapters, together, deadline - time.monotonic())
    return done


def samples(deployed_at: datetime, job_release: str) -> tuple[Sample, Sample, Sample, Sample]:
    """Return a batch, which has a job run of its own, a good file, a bad one and its correction.

    No two have the same bytes, as a likely duplicate would be.
    """
    name, folder = f"{deployed_at:%Y%m%d-%H%M%S}", TABLE.replace(".", "/")
    at, again = times.text(deployed_at), f"{folder}/{name}-again.csv"
    batch, file = f"{BATCHES}smoke-{name}/", f"{name}-batch.csv"
    manifest = json.dumps({"files": [{"key": file, "table": TABLE}]})

    def rows(release: str) -> str:
        return f"deployed_at,job_release\n{at},{release}\n"

    return (
        Sample(
            "batch",
            State.PUBLISHED,
            {f"{batch}{file}": rows(f"{job_release} batch"), f"{batch}{MANIFEST}": manifest},
        ),
        Sample("first file", State.PUBLISHED, {f"{folder}/{name}.csv": rows(job_release)}),
        Sample("bad file", State.REJECTED, {again: rows("")}),
        Sample("second file", State.PUBLISHED, {again: rows(f"{job_release} second")}),
    )


def _ended(
    adapters: Adapters, together: Sequence[Sample], seconds: float
) -> list[TrackedIngestion]:
    """Drop some files, and return them once all is done for them. Raises LakegateError."""
    tracked = [_sent(adapters, each) for each in together]
    with show_progress(terminal.err()) as show:
        items = follow(adapters, tracked, finished, seconds, show)
    for sample, item in zip(together, items, strict=True):
        if item.ingestion.state is not sample.state:
            explain(terminal.err(), adapters, [item])
            raise _failed(sample, item)
    return items


def _sent(adapters: Adapters, sample: Sample) -> TrackedIngestion:
    """Return the file that an interrupted try dropped, or drop it now."""
    landed = LandedObject(adapters.landing.bucket, sample.key, "", "", 0)
    known = list(adapters.ledger.versions(landed))
    good = [each for each in known if each.state is sample.state]
    if earlier := good or [each for each in known if not each.ended]:
        return TrackedIngestion(earlier[0])
    put = [adapters.landing.put(key, text.encode()) for key, text in sample.objects.items()]
    return dropped(put[-1])


def _failed(sample: Sample, item: TrackedIngestion) -> LakegateError:
    ended = f"{item.name} is {item.ingestion.state} and not {sample.state}"
    message = (
        f"the smoke test's {sample.what} {ended}: see above\n"
        "All is deployed. Correct the cause, check with `lakegate doctor`, and deploy again."
    )
    return LakegateError("SMOKE_FAILED", message)
