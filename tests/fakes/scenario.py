"""A deployment with the words of its tests: what was given, what happens, and what it ended as."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from functions.adapters.emr import RunState
from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.operations.decisions.failed import Outcome, discard, publish_anyway, replay
from functions.pipeline.publication.publish import publish
from lakegate.errors import Transient
from lakegate.job.landing import LandedObject
from tests.fakes.catalog import FakeTable
from tests.fakes.deployment import ORDERS, TABLE, Deployment, Known
from tests.fakes.faults import Fault, When, die, unavailable
from tests.fakes.job import Script, passed
from tests.fakes.promises import check_promises, left_behind

KEY, FIRST = "shop/orders/a.parquet", "shop/orders/first.parquet"
FOREVER = float("inf")


class Scenario(Deployment):
    """A deployment that is brought to a step by one word, and asked for its state by another."""

    def ended(
        self, key: str = KEY, body: bytes | None = None, script: Script = passed
    ) -> Ingestion:
        """Land a file and run everything to its end; return the ingestion."""
        return self.end_of(self.land(key, body, script))

    def end_of(self, landed: Known) -> Ingestion:
        """Run everything to its end; return the ingestion of this."""
        self.settle()
        return self.ingestion(landed)

    def submit(self, key: str = KEY, script: Script = passed) -> Ingestion:
        """Land a file and start its job."""
        landed = self.land(key, script=script)
        self.deliver()
        return self.ingestion(landed)

    def run(
        self, key: str = KEY, body: bytes | None = None, script: Script = passed
    ) -> LandedObject:
        """Land a file and run its job, whose end no function knows yet."""
        landed = self.land(key, body, script)
        self.go()
        return landed

    def land_unannounced(self, key: str = KEY, body: bytes | None = None) -> LandedObject:
        """Land a file whose event is lost."""
        self.loses_events = True
        landed = self.land(key, body)
        self.loses_events = False
        return landed

    def go(self, rounds: int = 1) -> None:
        """Deliver the messages, then run the jobs; so many times."""
        for _ in range(rounds):
            self.deliver()
            self.run_jobs()

    def fail(self, call: str, when: When = "before", times: float = 1) -> None:
        """Let the next calls of that name fail."""
        self.journal.strike(call, Fault(unavailable, when, times))

    def kill(self, call: str, when: When = "before") -> None:
        """Let the process of the next call of that name die."""
        self.journal.strike(call, Fault(die, when))

    def upload_contract(self, text: str, table: str = TABLE) -> None:
        """Upload the contract of a table."""
        self.lake.put_text(f"contracts/{table}.yaml", text.encode())

    def require_more(self) -> None:
        """Upload a contract of shop.orders with one more check."""
        self.upload_contract(ORDERS.replace("required: true", "required: true, unique: true"))

    def replace_rows(self, mode: str, **settings: str) -> None:
        """Upload a contract of shop.orders whose files replace rows: upsert, or overwrite."""
        asked = {"writeMode": mode, **settings}
        listed = ", ".join(f"{{property: {name}, value: {value}}}" for name, value in asked.items())
        text = ORDERS.replace("required: true", "primaryKey: true, partitioned: true")
        self.upload_contract(f"{text}customProperties: [{listed}]\n")

    def move_main(self) -> None:
        """Let another process commit to the table on main, without a row."""
        self.catalog.commit("main", TABLE, self.main().append())

    def merge_late(self, members: Sequence[Ingestion]) -> str:
        """Let a process continue that hung before it merged an intent, whose branch is gone now."""
        first = members[0]
        self.catalog.create_branch(first.branch)
        intent, named = first.intent, merge_commit.properties(members)
        at = self.catalog.merge(intent.branch, intent.hash, first.base_hash, "late", named)
        self.catalog.delete_branch(first.branch)
        return at

    def wait_together(self, files: int) -> list[LandedObject]:
        """Bring audited files to the point where they wait for main, which changed since."""
        self.ended(FIRST)
        landed = [self.land(f"shop/orders/{number}.parquet") for number in range(files)]
        self.run("shop/orders/another.parquet")
        self.fail("catalog.merge", times=files)
        self.deliver()
        return landed

    def share_an_intent(self, landed: list[LandedObject]) -> list[Ingestion]:
        """Bring waiting files to the point where they share one intent that is not merged yet."""
        at_the_next = Fault(lambda: self.fail("catalog.merge"))
        self.journal.strike("ledger.rebase", at_the_next)
        with suppress(Transient):
            self.publish(landed[0])
        return [self.ingestion(each) for each in landed]

    def commit_odd_column(self, on: Ingestion) -> str:
        """Give the table a column on an ingestion's branch that main's lacks; return the commit."""
        table = self.catalog.table(on.audited_hash, TABLE)
        assert table
        odd = replace(table.with_columns("id@1", "odd@2"), added=table.added)
        return self.catalog.commit(on.branch, TABLE, odd)

    def end_run(self, known: Known, state: RunState, details: str = "") -> None:
        """End its job run without a driver; EMR announces it."""
        run = self.ingestion(known).job_run
        self.jobs.end(run, state, details)
        self.send_job_run(run)

    def publish(self, known: Known) -> Ingestion:
        """Publish it in a process of its own."""
        return publish(self.adapters, self._as_read(known))

    def replay(self, known: Known, **options: Any) -> Outcome:
        """Replay it."""
        return replay(self.adapters, self._as_read(known), **options)

    def publish_anyway(self, known: Known, by: str = "Ann", **options: Any) -> Outcome:
        """Publish it anyway."""
        now = self._as_read(known)
        return publish_anyway(self.adapters, now, by, "it is known", **options)

    def discard(self, known: Known, **options: Any) -> Outcome:
        """Discard it."""
        return discard(self.adapters, self._as_read(known), **options)

    def end(self, known: Known) -> str:
        """Return its state, with the code of the reason."""
        found = self.ingestion(known)
        return f"{found.state} {found.reason.code}" if found.reason else f"{found.state}"

    def message(self, known: Known) -> str:
        """Return the message of the reason."""
        reason = self.ingestion(known).reason
        return reason.message if reason else ""

    def states(self, *known: Known) -> list[State]:
        """Return the state of each."""
        return [self.ingestion(each).state for each in known]

    def on_main(self, *known: Known) -> list[bool]:
        """Return whether the rows of each are on main."""
        landed = (each.landed if isinstance(each, Ingestion) else each for each in known)
        files = self.published_files()
        return [f"{each.uri}@{each.version}" in files for each in landed]

    def main(self, table: str = TABLE) -> FakeTable:
        """Return the table on main, which must be there."""
        found = self.catalog.table("main", table)
        assert found
        return found

    def told(self) -> list[str]:
        """Return the text of each alert."""
        return [str(alert.blocks) for _, alert in self.alerts.posted]

    def check(self) -> None:
        """Run everything to its end. Raise AssertionError if a promise is broken."""
        self.settle()
        check_promises(self)
        assert left_behind(self) == []

    def _as_read(self, known: Known) -> Ingestion:
        """Return an ingestion as its reader knows it, which may be outdated."""
        return known if isinstance(known, Ingestion) else self.ingestion(known)
