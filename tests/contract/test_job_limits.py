"""EMR Serverless and its fake take calls only so fast, and then none; the clock is the test's."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from werkzeug.serving import make_server

from functions.adapters.emr import Jobs
from functions.wiring import CONFIG
from infra.local.emr.api import Lane, Operations, web_app
from infra.local.emr.drivers import Driver
from infra.local.emr.faults import Faults
from infra.local.emr.limits import BURST, Limits
from infra.local.emr.rights import own, require_nothing
from infra.local.emr.runs import Application
from infra.local.emr.scheduler import Pace, Scheduler
from infra.local.emr.store import JobRuns
from lakegate.errors import Transient
from tests.contract.aws import ACCOUNT
from tests.contract.emr_service import APPLICATION
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import SETTINGS
from tests.fakes.jobs import FakeJobs
from tests.unit.lakegate.test_jobspec import SPEC

ONCE = Config(retries={"total_max_attempts": 1})
OURS = replace(SETTINGS, emr_application_id=APPLICATION, emr_shared_application_id="00shared")


@dataclass(frozen=True)
class Limited:
    """The jobs of an application without runs, and the clock of its limits."""

    jobs: Jobs | FakeJobs
    clock: FakeClock

    def start(self) -> str:
        """Start a new run."""
        return self.jobs.start(replace(SPEC, ingestion=uuid.uuid4().hex))

    def starts(self) -> int:
        """Return how many runs can be started until one is refused."""
        return _until_refused(self.start)


def _until_refused(call: Callable[[], object]) -> int:
    made: list[object] = []
    with pytest.raises(Transient, match=r"JOBS_UNAVAILABLE.*ThrottlingException"):
        made.extend(call() for _ in range(2 * BURST))
    return len(made)


@contextmanager
def served(home: Path, clock: Callable[[], float], burst: int = BURST) -> Iterator[str]:
    """Yield the address of the stand-in; its runs wait for ever."""
    lanes = [_lane(home, id_) for id_ in OURS.emr_applications]
    operations = Operations(lanes, faults := Faults())
    app = web_app(operations, faults, Limits(burst, clock), require_nothing)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    server.server_close()


def _lane(home: Path, id_: str) -> Lane:
    application = Application(id_, id_, "emr-7", "us-east-1", "000000000000", 1, 360, 64, 15, 0)
    runs = JobRuns(home, id_, lambda before, run: None)
    scheduler = Scheduler(application, runs, _no_driver, home, own, Pace(), prewarm=False)
    return Lane(application, runs, scheduler)


def _no_driver(number: int) -> Driver:
    raise AssertionError("a scheduler that does not work starts no driver")


def client(address: str, config: Config = ONCE) -> Any:
    return boto3.client("emr-serverless", endpoint_url=address, config=config, **ACCOUNT)


@pytest.fixture(params=["in memory", "EMR Serverless"])
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Limited]:
    clock = FakeClock()
    if request.param == "in memory":
        fake = FakeJobs(clock)
        fake.limit()
        yield Limited(fake, clock)
        return
    with served(tmp_path, lambda: clock.at) as address:
        yield Limited(Jobs(client(address), OURS), clock)


def test_so_many_runs_start_at_once(limited: Limited) -> None:
    """25 runs start at once and the next is refused, which starts nothing."""
    assert limited.starts() == BURST == 25
    assert len(limited.jobs.runs()) == BURST


def test_from_then_on_one_run_starts_a_second(limited: Limited) -> None:
    """Each second lets one more start, up to a burst of 25 again; what was refused counts not."""
    limited.starts()
    limited.clock.pass_(3.5)
    assert limited.starts() == 3
    limited.clock.pass_(1.4)
    assert limited.starts() == 1
    limited.clock.pass_(1000)
    assert limited.starts() == BURST


def test_a_refused_start_can_be_repeated(limited: Limited) -> None:
    """The same attempt starts once its turn has come, by the same token."""
    limited.starts()
    again = replace(SPEC, ingestion=uuid.uuid4().hex)
    with pytest.raises(Transient, match="ThrottlingException"):
        limited.jobs.start(again)
    limited.clock.pass_(2)
    assert limited.jobs.start(again) == limited.jobs.start(again)


def test_lists_have_a_limit_of_their_own(limited: Limited) -> None:
    """Both applications' runs are listed 12 times at once; one can always be described."""
    run = limited.start()
    assert _until_refused(limited.jobs.runs) == BURST // 2
    assert limited.starts() == BURST - 1
    for _ in range(2 * BURST):
        assert limited.jobs.get(run).id == run


def test_it_is_refused_as_by_aws(tmp_path: Path) -> None:
    """The error is that of every service of AWS, which boto3's retries know."""
    with served(tmp_path, lambda: 0.0, burst=0) as address, pytest.raises(ClientError) as refused:
        client(address).list_job_runs(applicationId=APPLICATION)
    answer = refused.value.response
    assert answer["Error"] == {"Code": "ThrottlingException", "Message": "Rate exceeded"}
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_the_functions_client_tries_again(tmp_path: Path) -> None:
    """A call more than the limit allows is made again by the client, and succeeds a bit later."""
    halves = count(0, 0.5)  # a clock that passes by being read
    with served(tmp_path, lambda: next(halves), burst=1) as address:
        limited = Limited(Jobs(client(address, CONFIG), OURS), FakeClock())
        assert len({limited.start() for _ in range(3)}) == 3
