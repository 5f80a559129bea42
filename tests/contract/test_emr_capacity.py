"""EMR Serverless admits runs by their drivers, and its application is changed only when stopped."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from botocore.stub import Stubber

from infra.aws import emr
from infra.aws.site import Site, connect
from infra.cloudformation import Change
from infra.stage import Stage
from lakegate.errors import LakegateError
from tests.contract.aws import ACCOUNT
from tests.contract.emr_service import APPLICATION, EventBus, Service
from tests.waiting import PATIENCE, eventually


@pytest.fixture
def service(own_service: Service) -> Service:
    """Return a service with the default capacity."""
    return own_service.start()


def _site(service: Service, tell: Callable[[str], None]) -> Site:
    """Return the site of a stage whose platform has the service's application."""
    stacks = boto3.client("cloudformation", **ACCOUNT)
    resource = {
        "LogicalResourceId": "EmrApplication",
        "PhysicalResourceId": APPLICATION,
        "ResourceType": emr.APPLICATION,
        "ResourceStatus": "CREATE_COMPLETE",
        "LastUpdatedTimestamp": datetime.now(UTC),
    }
    stubber = Stubber(stacks)
    stubber.add_response("list_stack_resources", {"StackResourceSummaries": [resource]})
    stubber.activate()
    known = {"cloudformation": stacks, "emr-serverless": service.client}
    return connect(Stage("dev", "000000000000", "us-east-1"), known.get, tell)


SMALL = "--conf spark.driver.cores=1 --conf spark.executor.cores=1"


class TestCapacity:
    def test_drivers_without_room_for_an_executor_wait_until_they_time_out(
        self, own_service: Service
    ) -> None:
        """Beside a driver of default size 7 vCPUs have no room: no run ever does its work."""
        flags = {"drivers": 2, "maximum-cpu": 7, "minute-seconds": 1}
        service = own_service.start(**flags)
        runs = [service.run("succeed", executionTimeoutMinutes=1) for _ in range(2)]
        ends = {service.wait_for(run, "SUCCESS", "CANCELLED")["state"] for run in runs}
        assert ends == {"CANCELLED"}

    def test_whole_runs_that_fit_all_succeed(self, own_service: Service) -> None:
        """A run waits, QUEUED, until its driver fits, and then until one executor does."""
        service = own_service.start(**{"drivers": 4, "maximum-cpu": 5})
        for run in [service.run_with(SMALL) for _ in range(4)]:
            service.wait_for(run, "SUCCESS")

    def test_the_bill_counts_each_worker_for_a_minute_at_least(self, service: Service) -> None:
        """A driver and the three executors of EMR's default are billed, each for a minute."""
        run = service.wait_for(service.run("succeed"), "SUCCESS")
        assert run["billedResourceUtilization"]["vCPUHour"] == pytest.approx(16 / 60, rel=1e-4)
        small = f"{SMALL} --conf spark.dynamicAllocation.maxExecutors=1"
        run = service.wait_for(service.run_with(small), "SUCCESS")
        assert run["billedResourceUtilization"]["vCPUHour"] == pytest.approx(2 / 60, rel=1e-4)


class TestTwoApplications:
    def test_runs_that_fill_one_hold_none_of_the_other(
        self, own_service: Service, bus: EventBus, tmp_path: Path
    ) -> None:
        """Each has its own capacity and runs, and the events of its runs name it."""
        flags = {"shared-application-id": "00shared", "shared-maximum-cpu": 8}
        service, over = own_service.start(**flags), tmp_path / "over"
        held, waits = service.run("wait", str(over)), service.run("succeed")
        shared = service.run("succeed", applicationId="00shared")
        asked = {"applicationId": "00shared", "jobRunId": shared}

        def state() -> str:
            return str(service.client.get_job_run(**asked)["jobRun"]["state"])

        eventually(lambda: state() == "SUCCESS")
        assert service.get(waits)["state"] == "QUEUED"
        with pytest.raises(service.client.exceptions.ResourceNotFoundException):
            service.get(shared)
        assert service.runs() == [waits, held]
        listed = service.client.list_job_runs(applicationId="00shared")["jobRuns"]
        assert [run["id"] for run in listed] == [shared]
        over.touch()
        service.wait_for(waits, "SUCCESS")
        eventually(lambda: bus.states(waits)[-1] == "SUCCESS")
        details = [each["Detail"] for each in bus.received]
        told = {(each["jobRunId"], each["applicationId"]) for each in details}
        assert {(held, APPLICATION), (waits, APPLICATION), (shared, "00shared")} <= told

    def test_a_client_token_counts_in_one_of_them(self, own_service: Service) -> None:
        """The same token starts a run in each application, and only one in each."""
        service = own_service.start(**{"shared-application-id": "00shared"})
        places = [APPLICATION, "00shared"] * 2
        started = [service.run("succeed", applicationId=p, clientToken="once") for p in places]
        assert started[:2] == started[2:]
        assert len(set(started)) == 2


class TestTheApplication:
    def test_it_is_not_stopped_during_a_run(self, service: Service, tmp_path: Path) -> None:
        """StopApplication is refused while a run is not complete."""
        over = tmp_path / "over"
        run = service.run("wait", str(over))
        with pytest.raises(service.client.exceptions.ValidationException, match="not complete"):
            service.client.stop_application(applicationId=APPLICATION)
        over.touch()
        service.wait_for(run, "SUCCESS")

    def test_a_change_of_the_platform_waits_for_runs_and_stops_it(
        self, own_service: Service, tmp_path: Path
    ) -> None:
        """A deployment that changes the application stops it once its runs have ended."""
        service = own_service.start()
        over = tmp_path / "over"
        told: list[str] = []
        run = service.run("wait", str(over))
        change = Change("EmrApplication", emr.APPLICATION, "Modify")
        with pytest.raises(LakegateError, match=r"IN_FLIGHT.*not complete"):
            emr.stop_for(_site(service, told.append), [change], seconds=0)
        assert told
        emr.stop_for(_site(service, lambda _: over.touch()), [change], PATIENCE)
        assert service.get(run)["state"] == "SUCCESS"
        assert service.state() == "STOPPED"

    @pytest.mark.parametrize(
        "change",
        [
            Change("Vpc", "AWS::EC2::VPC", "Modify"),
            Change("EmrApplication", emr.APPLICATION, "Add"),
            Change("EmrSharedApplication", emr.APPLICATION, "Modify"),
        ],
        ids=lambda change: change.resource,
    )
    def test_no_other_change_stops_it(self, service: Service, change: Change) -> None:
        """A change of something else, or a new or another application, needs no stop."""
        service.wait_for(service.run("succeed"), "SUCCESS")
        emr.stop_for(_site(service, print), [change], seconds=0)
        assert service.state() == "STARTED"

    def test_idle_it_stops_by_itself_and_a_run_starts_it_again(self, own_service: Service) -> None:
        """After its idle minutes it is STOPPED; the next run makes it STARTED."""
        service = own_service.start(**{"minute-seconds": 1, "idle-minutes": 1})
        assert service.state() == "CREATED"
        for _ in range(2):
            service.wait_for(service.run("succeed"), "SUCCESS")
            eventually(lambda: service.state() == "STOPPED")
