"""The events of a story: files land, messages arrive, others change main, faults strike.

Events are plain values: hypothesis draws them, and a story that breaks a promise is printed as code
for a test.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial

from functions.model.budget import Use
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.operations.decisions.failed import (
    discard,
    mark_discarded,
    publish_anyway,
    replay,
)
from functions.operations.decisions.restore import restore, undo
from functions.operations.decisions.takeover import gate, takeover
from functions.pipeline.publication.replace import CANNOT_REPLACE
from functions.pipeline.start.intake import retract
from lakegate.errors import LakegateError
from lakegate.job.change import retraction
from lakegate.job.landing import batch_name, ingestion_id
from tests.fakes.deployment import ORDERS, OTHER_TABLE, TABLE, Deployment
from tests.fakes.faults import Fault, ProcessDied, die
from tests.fakes.others import Others
from tests.fakes.stage import File, Kind, Stage, Story, happen

BATCH = {"orders.parquet": TABLE, "returns.parquet": OTHER_TABLE}
KEYS = (*(f"shop/orders/{name}.parquet" for name in "abc"), "shop/returns/a.parquet")


@dataclass(frozen=True)
class Land:
    """A file lands; an existing key gets another version."""

    key: str = KEYS[0]
    file: File = File.GOOD
    body: bytes | None = None

    def happen(self, stage: Stage) -> None:
        """Upload it; S3 announces it."""
        body = b"" if self.file is File.EMPTY else self.body
        landed = stage.deployment.land(self.file.key(self.key), body, self.file.script)
        stage.files[ingestion_id(landed)] = self.file
        if stage.checks_whole_table:
            row = str(len(stage.files) % 5)
            stage.deployment.keys[f"{landed.uri}@{landed.version}"] = frozenset({row})


@dataclass(frozen=True)
class Batch:
    """A batch of files of both tables lands; under a known name it is another version of it."""

    name: str = "monday"
    file: File = File.GOOD

    def happen(self, stage: Stage) -> None:
        """Upload files and manifest; `file` sets how the job run ends."""
        if stage.restores:
            return
        stage.has_batches = True
        stage.deployment.clock.pass_(1)  # S3's listings tell no smaller times
        landed = stage.deployment.batch(self.name, BATCH, self.file.script)
        stage.files[ingestion_id(landed)] = self.file


@dataclass(frozen=True)
class Ask:
    """A command requests a change of shop.orders; the same number is the same change."""

    nth: int = 1

    def happen(self, stage: Stage) -> None:
        """Request the change until it is recorded; without a table it ends errored."""
        landed = stage.deployment.change(self.nth)
        if landed.key in {each.key for each in stage.deployment.lake.changes()}:
            stage.files[ingestion_id(landed)] = File.GOOD
        stage.excused |= {"errored TABLE_GONE"}
        stage.excused |= {"rejected CANNOT_REPLACE"} if stage.replaces_versions else set()


@dataclass(frozen=True)
class Retract:
    """A command requests that the rows of a published file are removed; it may be refused."""

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Request it; where others rewrote or dropped the rows, or main lost them, it errs."""
        deployment = stage.deployment
        known = [i for i in deployment.ledger.all() if i.state is State.PUBLISHED]
        if not known:
            return
        published = known[self.nth % len(known)]
        deployment.journal.part()
        with suppress(LakegateError, ProcessDied):
            retract(deployment.adapters, published, "Ann", "wrong day")
        asked = retraction(published.table, published.id).landed(deployment.lake.bucket)
        if asked.key in {each.key for each in deployment.lake.changes()}:
            stage.files[ingestion_id(asked)] = File.GOOD
        stage.excused |= {"errored TABLE_GONE", "errored ROWS_SCATTERED", "errored OBJECT_GONE"}


@dataclass(frozen=True)
class Restore:
    """A command asks that shop.orders gets the rows of an earlier commit; it may be refused.

    From then on no batches land, others change no rows, and none replace each other; and it does
    not happen after such: that would need a model of what came back.
    """

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Request it; main may have moved on before it is carried out, or have no table by then."""
        deployment = stage.deployment
        commits = [c.hash for c, names in deployment.catalog.history() if TABLE in names]
        mixed = (stage.replaces_rows, stage.has_batches, stage.asked)
        is_mixed = not deployment.others.idle or any(mixed)
        if not commits or (is_mixed and not stage.restores):
            return
        stage.restores = True
        deployment.journal.part()
        with suppress(LakegateError, ProcessDied):
            wanted = undo(deployment.adapters, TABLE, commits[self.nth % len(commits)])
            asked = wanted.change().landed(deployment.lake.bucket)
            stage.asked[asked.key] = ingestion_id(asked)
            restore(deployment.adapters, wanted, "Ann", "a bad load")
        there = {each.key for each in deployment.lake.changes()}
        stage.files |= {id_: File.GOOD for key, id_ in stage.asked.items() if key in there}
        stage.excused |= {"errored TABLE_GONE", "errored TABLE_MOVED"}


@dataclass(frozen=True)
class Gate:
    """Another writer commits on a branch of its own, and a command takes it over if it `asks`."""

    nth: int = 0
    rewrites: bool = False
    asks: bool = True

    def happen(self, stage: Stage) -> None:
        """Write, and request it; it may be refused, or main may have changed the same rows."""
        if stage.restores:
            return
        deployment, name = stage.deployment, f"write/{self.nth}"
        deployment.others.write_on_own_branch(name, TABLE, rewrites=self.rewrites)
        deployment.journal.part()
        with suppress(LakegateError, ProcessDied):
            if not self.asks:
                return
            wanted = takeover(deployment.adapters, name, by="Ann")
            asked = wanted.landed(deployment.lake.bucket)
            stage.asked[asked.key] = ingestion_id(asked)
            gate(deployment.adapters, wanted)
        there = {each.key for each in deployment.lake.changes()}
        stage.files |= {id_: File.GOOD for key, id_ in stage.asked.items() if key in there}
        ends = ("TABLE_GONE", "TABLE_MOVED", "TABLE_REPLACED", "ALREADY_TAKEN", "COMMITS_GONE")
        stage.excused |= {f"errored {code}" for code in ends}
        stage.excused |= {"rejected CANNOT_REPLACE"} if stage.replaces_versions else set()


@dataclass(frozen=True)
class Deliver:
    """One waiting message is delivered; `again` leaves a duplicate of it in the queue."""

    nth: int = 0
    again: bool = False

    def happen(self, stage: Stage) -> None:
        """Call its Lambda, which may fail."""
        stage.deployment.deliver_one(self.nth, again=self.again)


@dataclass(frozen=True)
class RunJob:
    """One job run ends."""

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Run it; EMR announces its end."""
        stage.deployment.run_one_job(self.nth)


@dataclass(frozen=True)
class Lose:
    """One waiting message is lost."""

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Remove it from its queue."""
        stage.deployment.lose_one(self.nth)


class Time(Enum):
    """Events that concern the whole deployment."""

    COURSE = "each waiting message is delivered once, and all job runs end"
    REDELIVERY = "every message ever sent is sent again"
    SWEEP = "the sweep runs"
    GARBAGE = "an unreadable message arrives"
    SILENCE = "from now on S3 and EMR send no events"
    SOUND = "from now on they send events again"
    COMES_AGAIN = "what shared runs have in hand comes again"
    WORK_LOST = "the work queue loses its messages"
    REST = "everything runs until nothing is left to do"

    def happen(self, stage: Stage) -> None:
        """Apply the event."""
        _IN_TIME[self](stage.deployment)


def _take_course(deployment: Deployment) -> None:
    deployment.deliver()
    deployment.run_jobs()


_IN_TIME: dict[Time, Callable[[Deployment], object]] = {
    Time.COURSE: _take_course,
    Time.REDELIVERY: Deployment.send_all_again,
    Time.SWEEP: Deployment.sweep,
    Time.GARBAGE: Deployment.send_garbage,
    Time.SILENCE: lambda deployment: setattr(deployment, "loses_events", True),
    Time.SOUND: lambda deployment: setattr(deployment, "loses_events", False),
    Time.COMES_AGAIN: lambda deployment: deployment.queues.show(),
    Time.WORK_LOST: lambda deployment: deployment.work.lose(),
    Time.REST: Deployment.settle,
}


@dataclass(frozen=True)
class Share:
    """From now on small files share runs, or have runs of their own again."""

    runs: int = 1

    def happen(self, stage: Stage) -> None:
        """Deploy again with other settings."""
        stage.deployment.share(self.runs)
        # Of one file a shared run has no exit code that could contradict its report.
        stage.excused |= {"published"} if self.runs else set()


@dataclass(frozen=True)
class Budget:
    """From now on a day has a budget in dollars; the bills of ended runs may be late.

    Of a few dollars few runs are paid, and files wait for the next day.
    """

    is_late: bool = False
    dollars: int = 1_000_000

    def happen(self, stage: Stage) -> None:
        """Deploy again with other settings."""
        stage.deployment.limit_spending(self.dollars)
        stage.deployment.jobs.bill = None if self.is_late else Use(3.0)


@dataclass(frozen=True)
class SharedRunDies:
    """A shared run dies at one of its calls, with files in hand.

    With `meanwhile` it is only thought dead, and goes on after these events: its files come again.
    """

    call: int = 0
    meanwhile: Story | None = None

    def happen(self, stage: Stage) -> None:
        """Let it take what waits, and die or go on."""
        others = self.meanwhile
        work = die if others is None else partial(happen, others, stage)
        if runs := stage.deployment.jobs.shared_runs():
            stage.deployment.break_shared(runs[0], self.call, work)


@dataclass(frozen=True)
class LoseRun:
    """EMR loses a job run that has not ended."""

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Remove the job run."""
        jobs = stage.deployment.jobs
        if running := stage.deployment.runs:
            run = running[self.nth % len(running)]
            stage.deployment.hung.add(jobs.spec(run).report_key)  # of a driver that may go on
            jobs.lose(run)
            stage.forgotten += 1
            stage.excused |= {"errored JOB_LOST"}


@dataclass(frozen=True)
class LoseEntry:
    """The ledger loses an ingestion.

    It does not happen after a backup of the catalog, as its restoration would lose the traces; nor
    while a decision to publish is under way, of which nothing else knows before main does. It does
    not happen where versions replace each other, because an unknown version is not
    replaced. It does not happen to a batch whose contracts now refuse batches: started again it
    ends errored before the sweep can restore it, and its first branch stays
    (docs/adr/0009-ledger-rebuild.md).
    """

    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Delete its item, as restoring a backup of the ledger does."""
        known = [i.id for i in stage.deployment.ledger.all()]
        if known and not stage.replaces_versions and not stage.backup:
            lost = stage.deployment.ledger.get(known[self.nth % len(known)])
            is_batch = bool(batch_name(lost.landed.key))
            if (is_batch and stage.refuses_batches) or (lost.decisions.approval and not lost.ended):
                return
            stage.deployment.ledger.lose(lost.id)
            stage.deployment.ledger.forget_search()
            stage.lost_entries = True
            stage.lost_batches |= is_batch
            stage.forgotten += 1


_KEY = "      - {name: key, logicalType: integer, quality: [{metric: duplicateValues, mustBe: 0, "
BEYOND = f"{_KEY}customProperties: [{{property: scope, value: table}}]}}]}}\n"
_CODE = "      - {name: code, logicalType: string, primaryKey: true}\n"
_UPSERT = "{property: writeMode, value: upsert}"
_REPLACING = {"rejected OUT_OF_ORDER", "errored NOT_IN_BATCH"}
CONTRACTS: dict[str, tuple[str, set[str]]] = {
    "asks for another column": ("      - {name: more, logicalType: string}\n", set()),
    "replaces versions": (
        "customProperties: [{property: onNewVersion, value: replace}]\n",
        {"ignored SUPERSEDED", "rejected CANNOT_REPLACE", "errored NOT_IN_BATCH"},
    ),
    "holds duplicates": (
        "customProperties: [{property: onDuplicate, value: hold}]\n",
        {"rejected LIKELY_DUPLICATE", "errored NOT_IN_BATCH"},
    ),
    "replaces rows": (
        (
            "      - {name: day, logicalType: date, partitioned: true}\n"
            "customProperties: [{property: writeMode, value: overwrite}]\n"
        ),
        _REPLACING,
    ),
    "merges rows": (f"{_CODE}customProperties: [{_UPSERT}]\n", _REPLACING),
    "merges the latest rows": (
        (
            f"{_CODE}      - {{name: at, logicalType: integer, required: true}}\n"
            f"customProperties: [{_UPSERT}, {{property: latestBy, value: at}}]\n"
        ),
        _REPLACING,
    ),
    "claims other keys": (
        (
            "      - {name: day, logicalType: date, partitioned: true}\n"
            "customProperties:\n"
            "  - {property: landingPrefix, value: other/orders/}\n"
            "  - {property: writeMode, value: overwrite}\n"
        ),
        _REPLACING | {"errored NO_CONTRACT"},
    ),
    "is as it was": ("", set()),
}
_REPLACE_ROWS = ("replaces rows", "merges rows", "merges the latest rows", "claims other keys")


@dataclass(frozen=True)
class Contract:
    """The owner of shop.orders changes its contract, and thereby the final states of good files."""

    now: str = "replaces versions"

    def happen(self, stage: Stage) -> None:
        """Upload the contract."""
        if self.now == "replaces versions" and stage.lost_entries:
            return
        if self.now == "holds duplicates" and stage.lost_batches:
            return
        replaces = self.now in ("replaces versions", *_REPLACE_ROWS)
        if replaces and (stage.checks_whole_table or stage.restores):
            return
        stage.replaces_rows |= replaces
        text, ends = CONTRACTS[self.now]
        text = BEYOND * stage.checks_whole_table + text
        stage.deployment.lake.put_text(f"contracts/{TABLE}.yaml", (ORDERS + text).encode())
        stage.deployment.keeps_keys(_UPSERT in text)
        stage.excused |= ends
        stage.replaces_versions |= self.now == "replaces versions"
        stage.refuses_batches |= self.now in ("holds duplicates", *_REPLACE_ROWS)


@dataclass(frozen=True)
class LookBeyond:
    """From now on the key of shop.orders must be unique in the whole table."""

    def happen(self, stage: Stage) -> None:
        """Upload a contract with that check."""
        stage.checks_whole_table = True
        Contract("is as it was").happen(stage)
        stage.excused |= {"rejected CHECKS_FAILED"}


CHANGES: dict[str, Callable[[Others, str], None]] = {
    "append": Others.append,
    "delete": Others.delete,
    "compact": Others.compact,
    "add a column": Others.add_column,
    "require a column": Others.require_column,
    "drop": Others.drop,
    "recreate": Others.recreate,
    "make a view": Others.make_view,
}


@dataclass(frozen=True)
class Change:
    """Another writer changes a table on main."""

    what: str = "append"
    table: str = TABLE

    def happen(self, stage: Stage) -> None:
        """Commit the change."""
        if stage.restores:
            return
        CHANGES[self.what](stage.deployment.others, self.table)


@dataclass(frozen=True)
class Meddle:
    """Another holder of the job's token writes to an open branch, or drops one."""

    nth: int = 0
    drops: bool = False

    def happen(self, stage: Stage) -> None:
        """Write to, or drop, the branch of an ingestion that has not ended."""
        open_ = _in_flight(stage.deployment)
        if not open_:
            return
        ingestion = open_[self.nth % len(open_)]
        if self.drops:
            stage.deployment.others.drop_branch(ingestion.branch)
        else:
            stage.deployment.others.write_on_branch(ingestion.branch, ingestion.tables[0])


@dataclass(frozen=True)
class Decide:
    """A command replays a failed ingestion or publishes it anyway, at any later time.

    A replay may be by the `original` contract, under which the file was audited first.

    It skips ingestions whose older rows would have to be deleted first.
    """

    nth: int = 0
    publishes: bool = False
    original: bool = False

    def happen(self, stage: Stage) -> None:
        """Run the command once; it may be refused, or fail."""
        deployment = stage.deployment
        failed = [(i, i.reason) for i in deployment.ledger.all() if i.state in ALERTED]
        open_ = [i for i, why in failed if why and why.code != CANNOT_REPLACE]
        if not open_:
            return
        now = open_[self.nth % len(open_)]
        stage.decided.add(now.id)
        deployment.journal.part()
        with suppress(LakegateError, ProcessDied):
            if self.publishes:
                publish_anyway(deployment.adapters, now, "Ann", "it is known")
            else:
                replay(deployment.adapters, now, by="Ann", original=self.original)


@dataclass(frozen=True)
class Discard:
    """A command discards a failed ingestion; a press only notes it, and the clean-up does it."""

    nth: int = 0
    is_pressed: bool = False

    def happen(self, stage: Stage) -> None:
        """Run the command once; it may be refused, or fail."""
        deployment = stage.deployment
        if failed := [i for i in deployment.ledger.all() if i.state in ALERTED]:
            now = failed[self.nth % len(failed)]
            stage.decided.add(now.id)
            deployment.journal.part()
            with suppress(LakegateError, ProcessDied):
                (mark_discarded if self.is_pressed else discard)(deployment.adapters, now, by="Ann")


@dataclass(frozen=True)
class Hours:
    """Hours pass in which nothing else happens."""

    hours: float = 4

    def happen(self, stage: Stage) -> None:
        """Let them pass."""
        stage.deployment.clock.pass_(self.hours * 3600)


@dataclass(frozen=True)
class Strike:
    """A fault strikes a call of `point` after `skipped` others; `meanwhile` runs while it hangs."""

    point: str
    kind: Kind
    skipped: int = 0
    meanwhile: Story = ()

    def happen(self, stage: Stage) -> None:
        """Arm the fault."""
        effect = partial(self._strike, stage)
        fault = Fault(effect, self.kind.when)
        stage.deployment.journal.strike_later(self.point, fault, self.skipped)
        if self.point.endswith(".delete"):  # which needs something to delete
            stage.deployment.bury_garbage()

    def _strike(self, stage: Stage) -> None:
        stage.struck[self.point, self.kind] += 1
        if effect := self.kind.effect:
            effect()
        else:
            happen(self.meanwhile, stage)


def _in_flight(deployment: Deployment) -> list[Ingestion]:
    """Return the ingestions with an own branch that is not merged yet."""
    there = set(deployment.catalog.branches("ingest/"))
    return [i for i in deployment.ledger.all() if i.branch in there and not i.ended]
