"""Lakegate over fakes: files land, messages are delivered and repeated, jobs and the sweep run."""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from functions.adapters.all import Adapters
from functions.adapters.emr import RunState
from functions.model.ingestion import Ingestion
from functions.on_job_run import job_run, job_run_judged
from functions.on_upload import upload
from functions.pipeline.outcome.audit_history import record_recent
from functions.pipeline.start.intake import ask
from functions.settings import Settings
from functions.sqs_handler import Work
from functions.sweep import sweep
from lakegate.audit.audit_tables import RESULTS
from lakegate.errors import LakegateError
from lakegate.job.change import Change
from lakegate.job.landing import LandedObject, ingestion_id
from lakegate.job.shared_run import Judged
from spark_jobs.shared import serve as shared_run
from spark_jobs.shared.taken_files import TakenFiles
from tests.fakes import messages
from tests.fakes.alerts import FakeAlerts
from tests.fakes.announcements import FakeAnnouncements
from tests.fakes.catalog import FakeCatalog, FakeTables
from tests.fakes.clock import FakeClock
from tests.fakes.compaction import run_compaction
from tests.fakes.faults import Journal, ProcessDied
from tests.fakes.job import Script, passed, run_job
from tests.fakes.jobs import FakeJobs
from tests.fakes.ledger import FakeLedger
from tests.fakes.others import Others
from tests.fakes.points import BETWEEN_WRITES
from tests.fakes.queues import FakeBacklog, FakeDeadLetters
from tests.fakes.shared_run import Judges
from tests.fakes.slack import FakeActions
from tests.fakes.storage import FakeLake, FakeLanding
from tests.fakes.work_queue import FakeQueues, FakeWorkQueue, specs_in

SETTINGS = Settings(
    landing_bucket="landing",
    lake_bucket="lake",
    ledger_table="ledger",
    nessie_uri="http://nessie:19120",
    nessie_token_secret="publisher",
    job_token_secret="job",
    region="us-east-1",
    emr_application_id="00application",
    emr_shared_application_id="00shared",
    emr_role_arn="arn:aws:iam::000000000000:role/job",
    job_code="s3://lake/jobs/1",
    alert_queue="http://sqs/alerts.fifo",
    announcement_queue="http://sqs/announcements",
    upload_queue="http://sqs/uploads",
    work_queue="http://sqs/work",
    job_run_queue="http://sqs/job-runs",
    upload_dead_letters="http://sqs/uploads-dead",
    job_run_dead_letters="http://sqs/job-runs-dead",
    alert_dead_letters="http://sqs/alerts-dead",
    stage="test",
)
ORDERS = """\
kind: DataContract
apiVersion: v3.1.0
id: shop-orders
version: 1.0.0
support: [{channel: "#orders", tool: slack}]
slaProperties: [{property: frequency, value: 10, unit: y}]
schema:
  - name: shop.orders
    customProperties: [{property: batches, value: allowed}]
    properties:
      - {name: id, logicalType: integer, required: true}
"""
TABLE, OTHER_TABLE = "shop.orders", "shop.returns"
RETURNS = ORDERS.replace("orders", "returns")
Known = LandedObject | Ingestion
_MOST_RECEIVES = 5
_MOST_ROUNDS = 40
_A_DAY = 24 * 3600.0
_NEVER = 3600.0  # seconds, after which a shared run would hide what it has in hand anew


@dataclass(frozen=True)
class _Message:
    work: Work
    body: str
    dead_letters: FakeDeadLetters
    received: int = 0


class Deployment:
    """One deployment with a contract for shop.orders, which claims the keys under shop/orders/."""

    loses_events = False
    takes_results = True
    drivers_time = ""
    compactions_lose = 0  # the rows of so many data files
    upserts_since = ""  # the head of main then

    def __init__(self, settings: Settings = SETTINGS, *, virgin: bool = False) -> None:
        self.settings = settings
        self.clock = FakeClock()
        self.journal = Journal()
        self.landing = FakeLanding(self.clock)
        self.lake = FakeLake(self.clock, settings.limits)
        self.ledger = FakeLedger(self.clock.now)
        self.ledger.between = partial(self.journal.between, BETWEEN_WRITES)
        self.catalog = FakeCatalog(self.clock, virgin=virgin)
        self.tables = FakeTables(self.catalog, self.lake.deleted)
        self.others = Others(self.catalog)
        self.jobs = FakeJobs(self.clock)
        self.uploads = FakeBacklog(self._uploads_waiting)
        self.queues = FakeQueues(self.clock, self.tell_verdict)
        self.work = FakeWorkQueue(self.queues)
        self.alerts = FakeAlerts()
        self.announcements, self.actions = FakeAnnouncements(), FakeActions()
        self.dead_uploads = FakeDeadLetters("uploads-dead")
        self.dead_job_runs = FakeDeadLetters("job-runs-dead")
        self.dead_alerts = FakeDeadLetters("alerts-dead.fifo")
        self.lake.put_text(f"contracts/{TABLE}.yaml", ORDERS.encode())
        self.garbage: list[str] = []
        self.adapters = self._world()
        self.keys: dict[str, frozenset[str]] = {}
        self.drivers: Counter[str] = Counter()
        self.hung: set[str] = set()
        self._scripts: defaultdict[str, Script] = defaultdict(lambda: passed)
        self.landing.announce = self._announce
        self._messages: deque[_Message] = deque()
        self._sent: list[_Message] = []
        self._tokens = 0

    def land(self, key: str, body: bytes | None = None, script: Script = passed) -> LandedObject:
        """Upload an object whose job run ends as scripted; S3 announces it.

        The default body is unique to the object.
        """
        unique = f"{key}, object {sum(1 for _ in self.landing.landed())}".encode()
        landed = self.landing.put(key, unique if body is None else body)
        self._scripts[ingestion_id(landed)] = script
        self._announce(landed)
        return landed

    def batch(self, name: str, files: Mapping[str, str], script: Script = passed) -> LandedObject:
        """Land files and the manifest that names them, each with its table; return the manifest.

        The batch's job run ends as scripted for its first file. This adds a contract for
        shop.returns.
        """
        self.lake.put_text(f"contracts/{OTHER_TABLE}.yaml", RETURNS.encode())
        for key in files:
            self.land(f"batches/{name}/{key}")
        listed = [{"key": key, "table": table} for key, table in files.items()]
        manifest = json.dumps({"files": listed}).encode()
        return self.land(f"batches/{name}/_manifest.json", manifest, script)

    def change(self, nth: int = 1, script: Script = passed) -> LandedObject:
        """Request a change of shop.orders; repeat the command if it fails."""
        asked = Change(TABLE, "UPDATE shop.orders SET id = id + 1", f"token {nth}", "Ann")
        landed = asked.landed(self.lake.bucket)
        self._scripts[ingestion_id(landed)] = script
        for _ in range(_MOST_RECEIVES):
            self.journal.part()
            with suppress(LakegateError, ProcessDied):
                ask(self.adapters, asked)
                break
        return landed

    def arrivals(self) -> list[LandedObject]:
        """Return all files that landed and all changes that were requested."""
        return [*self.landing.landed(), *self.lake.changes()]

    def script(self, known: Known, script: Script) -> None:
        """Set how the object's next job runs end."""
        self._scripts[_id(known)] = script

    def ask(self, **settings: str) -> None:
        """Upload the contract again with these of Lakegate's own properties."""
        listed = [f"{{property: {name}, value: {value}}}" for name, value in settings.items()]
        text = f"{ORDERS}customProperties: [{', '.join(listed)}]\n"
        self.lake.put_text(f"contracts/{TABLE}.yaml", text.encode())

    def keeps_keys(self, now: bool) -> None:
        """Note since when the contract in force lets files replace rows by key, if it does."""
        head = self.upserts_since or self.catalog.head("main")
        self.upserts_since = head if now else ""

    def restrict_batches(self, **settings: str) -> None:
        """Upload the contract without its permission for batches, or with this one."""
        (line,) = (line for line in ORDERS.splitlines() if "batches" in line)
        given = [f"{{property: {name}, value: {value}}}" for name, value in settings.items()]
        text = ORDERS.replace(line, f"    customProperties: [{', '.join(given)}]")
        self.lake.put_text(f"contracts/{TABLE}.yaml", text.encode())

    def look_beyond(self) -> None:
        """Upload a contract that requires unique keys in the whole table."""
        rule = "{metric: duplicateValues, mustBe: 0, customProperties: [SCOPE]}"
        rule = rule.replace("SCOPE", "{property: scope, value: table}")
        text = ORDERS.replace("required: true", f"required: true, quality: [{rule}]")
        self.lake.put_text(f"contracts/{TABLE}.yaml", text.encode())

    def land_with(self, key: str, *keys: str, script: Script = passed) -> LandedObject:
        """Land a file whose rows have these keys, by default a good one."""
        landed = self.land(key, script=script)
        self.keys[f"{landed.uri}@{landed.version}"] = frozenset(keys)
        return landed

    def send_upload(self, *landed: LandedObject) -> None:
        """Put S3's notification into its queue."""
        announced = [self.landing.announced(each) for each in landed]
        self._send(upload, messages.upload(*announced), self.dead_uploads)

    def send_job_run(self, run: str) -> None:
        """Put EMR's event into its queue."""
        self._send(job_run, messages.state_change(run), self.dead_job_runs)

    def send_garbage(self) -> None:
        """Put a message that is no valid event into a queue."""
        self.garbage.append(f"garbage {len(self.garbage)}!")
        self._send(upload, self.garbage[-1], self.dead_uploads)

    def bury_garbage(self) -> None:
        """Put a message that is no valid event into each dead-letter queue."""
        self.garbage.append(f"garbage {len(self.garbage)}!")
        for queue in (self.dead_uploads, self.dead_job_runs, self.dead_alerts):
            queue.send(self.garbage[-1])

    def send_all_again(self) -> None:
        """Put every message that was ever sent into its queue once more."""
        self._messages.extend(self._sent)

    def deliver(self) -> None:
        """Deliver each waiting message once; a failed one waits again or becomes a dead letter."""
        for message in [self._messages.popleft() for _ in range(len(self._messages))]:
            self._deliver(message)

    def deliver_together(self, nth: int, several: int) -> None:
        """Deliver several waiting messages to one Lambda, job runs first."""
        taken = [message for _ in range(several) if (message := self._take_one(nth))]
        for message in taken:
            if message.work is job_run:
                with suppress(Exception):  # the work itself raises it again
                    job_run_judged(self.adapters, message.body)
        for message in taken:
            self._deliver(message)

    def deliver_one(self, nth: int, *, again: bool = False) -> None:
        """Deliver one waiting message; `again` leaves a duplicate in the queue."""
        if message := self._take_one(nth):
            self._messages.extend([message] * again)
            self._deliver(message)

    def lose_one(self, nth: int) -> None:
        """Lose one waiting message."""
        if (message := self._take_one(nth)) and message.body in self.garbage:
            self.garbage.remove(message.body)

    @property
    def waits(self) -> bool:
        """Return whether a message waits."""
        return bool(self._messages)

    @property
    def runs(self) -> list[str]:
        """Return the job runs of single attempts that have not ended."""
        shared = self.jobs.shared_runs()
        return [r.id for r in self.jobs.runs() if not r.has_ended and r.id not in shared]

    def run_jobs(self) -> None:
        """Run every started job to its end; EMR announces each."""
        for run in self.runs:
            self._run_job(run)
        for run in self.jobs.shared_runs():
            self.run_shared(run)

    def run_shared(self, run: str, *, in_steps: bool = False) -> None:
        """Have a shared run serve until no file comes any more, and end.

        With `in_steps` its calls are recorded as well: the run may fail, die or hang at each of
        them.
        """
        self._work_shared(run, self.journal if in_steps else Journal())

    def break_shared(self, run: str, call: int, meanwhile: Callable[[], object]) -> None:
        """Have others take the files of a shared run at its nth call; `meanwhile` may raise."""
        journal, calls = Journal(), count()

        def pause(_: str) -> tuple[()]:
            if next(calls) == call:
                self.queues.show()
                meanwhile()
            return ()

        journal.pause = pause
        self._work_shared(run, journal)

    def _work_shared(self, run: str, journal: Journal) -> None:
        parts = {"catalog": self.catalog, "lake": self.lake, "queues": self.queues}
        catalog, lake, queues = (journal.watched(f"job_{n}", part) for n, part in parts.items())
        judges = Judges(catalog, lake, self._scripts, self.keys, self._next_token)
        told = self.jobs.shared_run(run)
        clock = shared_run.Clock(lambda: self.clock.at, self.clock.pass_)
        try:
            shared_run.serve(told, queues, TakenFiles(told, judges.means), clock, _NEVER)
        except ProcessDied:
            self.end_shared(run, RunState.FAILED)
        else:
            self.end_shared(run)

    @property
    def late(self) -> set[str]:
        """Return the keys of reports that may come after others concluded their attempts."""
        taken_away = (spec for body in self.queues.taken_away for spec in specs_in(body))
        return self.hung | {spec.report_key for spec in taken_away}

    @property
    def was_doubled(self) -> bool:
        """Return whether any attempt was queued twice, or taken by two shared runs."""
        return self.work.sent_twice or bool(self.queues.taken_away)

    def share(self, runs: int) -> None:
        """Deploy again, with so many shared runs at most."""
        self.settings = replace(self.settings, shared_runs=runs)
        self.work.sent_twice |= not runs  # as what waits begins another attempt
        self.adapters = self._world()

    def limit_spending(self, dollars: int) -> None:
        """Deploy again, with so many dollars a day for job runs at most."""
        self.settings = replace(self.settings, daily_budget_usd=dollars)
        self.adapters = self._world()

    @property
    def has_room(self) -> bool:
        """Return whether the day's budget has room for one more job run."""
        spent = self.ledger.spending(self.clock.now()[:10])
        return spent.admits(self.settings.daily_budget_usd)

    def keep(self, days: int) -> None:
        """Deploy again; what expires is kept for so many days."""
        self.settings = replace(self.settings, keep_days=days)
        self.adapters = self._world()

    def end_shared(self, run: str, state: RunState = RunState.SUCCESS) -> None:
        """End a shared run; EMR announces it."""
        self.jobs.end(run, state)
        if not self.loses_events:
            self.send_job_run(run)

    def tell_verdict(self, judged: Judged) -> None:
        """Put a message of a shared run into its queue."""
        self._send(job_run, judged.to_json(), self.dead_job_runs)

    def run_one_job(self, nth: int, *, in_steps: bool = False) -> None:
        """Run one of the started jobs to its end.

        With `in_steps` its calls are recorded as well: the run may fail, die or hang at each of
        them.
        """
        shared = self.jobs.shared_runs()
        if running := [*self.runs, *shared]:
            run = running[nth % len(running)]
            (self.run_shared if run in shared else self._run_job)(run, in_steps=in_steps)

    def declare(self, nth: int, state: RunState) -> None:
        """Have EMR declare one job run over, although its driver may continue."""
        if running := self.runs:
            run = running[nth % len(running)]
            self.hung.add(self.jobs.spec(run).report_key)
            self.jobs.end(run, state, "the driver does not answer")
            self.send_job_run(run)

    def sweep(self) -> dict[str, int]:
        """Let the grace time pass, then sweep; a process that died did nothing."""
        self.clock.pass_(self.settings.grace_seconds + 1)
        self.journal.part()
        try:
            return sweep(self.adapters)
        except ProcessDied:
            return {}

    def settle(self) -> None:
        """Run everything until nothing is left to do. Raise AssertionError if it never ends.

        Where the day's budget has no room, the next day begins. Results may be left if they cannot
        be recorded.
        """
        for _ in range(_MOST_ROUNDS):
            while self._messages:
                self.deliver()
                self.run_jobs()
            self.ledger.behind.clear()  # no index is for as long as the grace time
            self.queues.show()  # nor does a run that hangs keep what it has in hand
            if self._is_at_rest() and not (self.takes_results and self._has_results()):
                return
            self.sweep()
            self.run_jobs()
            if not (self.has_room or self._messages):  # else a run may just have ended
                self.clock.pass_(_A_DAY)
        raise AssertionError(f"never at rest: {list(self.ledger.unfinished('9999'))}")

    def ingestion(self, known: Known) -> Ingestion:
        """Return the ledger's entry of a landed object, as it is now."""
        return self.ledger.get(_id(known))

    def published_files(self, table: str = TABLE) -> list[str]:
        """Return the landed objects whose data files of a table are on main."""
        found = self.catalog.table("main", table)
        return sorted(file.rpartition("#")[0] for file in found.files) if found else []

    def _world(self) -> Adapters:
        watched = self.journal.watched
        parts: dict[str, Any] = {
            name: watched(name, getattr(self, name))
            for name in (
                *("landing", "lake", "ledger", "catalog"),
                *("jobs", "uploads", "work", "alerts", "announcements", "actions"),
            )
        }
        return Adapters(
            settings=self.settings,
            tables=lambda: watched("tables", self.tables),
            upload_dead_letters=watched("dead_uploads", self.dead_uploads),
            job_run_dead_letters=watched("dead_job_runs", self.dead_job_runs),
            alert_dead_letters=watched("dead_alerts", self.dead_alerts),
            now=self._now,
            token=self._token,
            **parts,
        )

    def _now(self) -> str:
        self.journal.part()
        return self.clock.now()

    def _token(self) -> str:
        self.journal.part()
        return self._next_token()

    def _next_token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:06x}"

    def _announce(self, landed: LandedObject) -> None:
        if not self.loses_events:
            self.send_upload(landed)

    def _uploads_waiting(self) -> int:
        return sum(message.work is upload for message in self._messages)

    def _send(self, work: Work, body: str, dead_letters: FakeDeadLetters) -> None:
        message = _Message(work, body, dead_letters)
        self._sent.append(message)
        self._messages.append(message)

    def _take_one(self, nth: int) -> _Message | None:
        if not self._messages:
            return None
        message = self._messages[nth % len(self._messages)]
        self._messages.remove(message)
        return message

    def _run_job(self, run: str, *, in_steps: bool = False) -> None:
        self.drivers[run] += 1
        if self.drivers[run] > 1:  # the other one may end the run
            self.hung.add(self.jobs.spec(run).report_key)
        spec = self.jobs.spec(run)
        script = self._scripts[spec.ingestion]
        catalog, lake = self.catalog, self.lake
        if in_steps:
            catalog = self.journal.watched("job_catalog", catalog)
            lake = self.journal.watched("job_lake", lake)
        try:
            if spec.compact:
                run_compaction(run, catalog, lake, self.jobs, loses=self.compactions_lose)
            else:
                run_job(run, script, catalog, lake, self.jobs, self.keys, self.drivers_time)
        except ProcessDied:
            self.jobs.end(run, RunState.FAILED, "the driver died")
        if not self.loses_events:
            self.send_job_run(run)

    def _deliver(self, message: _Message) -> None:
        self.journal.part()
        try:
            message.work(self.adapters, message.body)
            if message.work is job_run:
                record_recent(self.adapters)
        except (Exception, ProcessDied):  # noqa: BLE001 - as SQS sees a Lambda: it failed
            received = message.received + 1
            if received == _MOST_RECEIVES:
                message.dead_letters.send(message.body)
            else:
                again = _Message(message.work, message.body, message.dead_letters, received)
                self._messages.append(again)

    def _is_at_rest(self) -> bool:
        known = {ingestion.id for ingestion in self.ledger.all()}
        return (
            not any(self.ledger.unfinished("9999"))
            and not (self.settings.shared_runs and self.work.size())
            and not self.ledger.compactions().under_way
            and all(ingestion_id(landed) in known for landed in self.arrivals())
            and not self.dead_uploads.waiting()
            and not self.dead_job_runs.waiting()
            and not self.dead_alerts.waiting()
        )

    def _has_results(self) -> bool:
        """Return whether results are left to record."""
        branches = self.catalog.branches(f"publish/{RESULTS.name}/")
        return bool(branches) or any(self.ledger.needs_recording())


def _id(known: Known) -> str:
    """Return the id of a landed object's ingestion."""
    return known.id if isinstance(known, Ingestion) else ingestion_id(known)
