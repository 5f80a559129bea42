"""Zones and vCPUs of EMR Serverless, as the account has them."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from functions.adapters.spark_submit import most_use
from infra import template
from infra.aws.emr import APPLICATION, capacity, refuse_unfit, stop_for, zones
from infra.aws.site import Site, connect
from infra.cloudformation import Change
from infra.stage import Stage
from lakegate.errors import LakegateError
from tests.fakes.deployment import SETTINGS
from tests.unit.adapters.test_emr_run_policy import SHARED

_ROOT = Path(__file__).parents[3]
_FILES = (_ROOT / "template.yaml", _ROOT / "infra" / "platform.yml")
DEFAULTS = template.defaults(*map(template.read, _FILES))
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}


class Account:
    """Stubbed services of an account; what they are told is in `told`."""

    def __init__(self, region: str = "us-east-1") -> None:
        self.told: list[str] = []
        self._region = region
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.client(service, self._region, **KEYS)
        return self._clients[service]

    def has(self, service: str, client: Any) -> None:
        """Set the client of a service."""
        self._clients[service] = client

    def answers(self, service: str, operation: str, answer: dict[str, Any]) -> None:
        """Let a service answer its next request."""
        stubber = Stubber(self.client(service))
        stubber.add_response(operation, answer)
        stubber.activate()

    @property
    def site(self) -> Site:
        return connect(Stage("dev", "000000000000", self._region), self.client, self.told.append)

    def allows(self, vcpus: int, **applications: str) -> "Account":
        """Set the quota of vCPUs; `applications` are there, by name, with the most that they take.

        They are listed in this order, and asked for in it.
        """
        answer = {"Quota": {"QuotaCode": "L-D05C8A75", "Value": float(vcpus)}}
        self.answers("service-quotas", "get_service_quota", answer)
        stubber = Stubber(self.client("emr-serverless"))
        listed = [_application(name, id=name) for name in applications]
        stubber.add_response("list_applications", {"applications": listed})
        for name, most in applications.items():
            if name not in ("lakegate-dev", "lakegate-dev-shared", "theirs"):
                shown = {"maximumCapacity": {"cpu": most, "memory": "64 GB"}}
                described = {"application": _application(name, applicationId=name, **shown)}
                stubber.add_response("get_application", described, {"applicationId": name})
        stubber.activate()
        return self

    def has_zones(self, zones: dict[str, str]) -> "Account":
        """Set the zones, names by ids; there is no platform yet."""
        found = [{"ZoneId": i, "ZoneName": n, "State": "available"} for i, n in zones.items()]
        self.answers("ec2", "describe_availability_zones", {"AvailabilityZones": found})
        stubber = Stubber(self.client("cloudformation"))
        missing = "Stack with id lakegate-dev-platform does not exist"
        stubber.add_client_error("describe_stacks", "ValidationError", missing)
        stubber.activate()
        return self


def _application(name: str, **more: Any) -> dict[str, Any]:
    now, arn = (
        datetime.now(UTC),
        f"arn:aws:emr-serverless:us-east-1:000000000000:/applications/{name}",
    )
    fixed = {"arn": arn, "name": name, "releaseLabel": "label", "type": "SPARK", "state": "STARTED"}
    now = datetime.now(UTC)
    return {**fixed, "createdAt": now, "updatedAt": now, **more}


def test_as_many_runs_are_allowed_as_have_room_for_an_executor() -> None:
    """With the defaults 64 vCPUs take eight runs with a driver and an executor of four each."""
    found = capacity(Account().allows(4000).site, DEFAULTS, {})
    assert found == {
        "MaximumCpu": "64",
        "MaximumMemory": "256",
        "ConcurrentRuns": "8",
        "SharedMaximumCpu": "5",
        "SharedMaximumMemory": "20",
        "SharedConcurrentRuns": "2",
    }
    assert {name: DEFAULTS[name] for name in found} == found


@pytest.mark.parametrize("runs", [0, 1, 3])
def test_shared_runs_have_room_for_all_of_their_workers(runs: int) -> None:
    """Each has what its driver and executors take, beside warm drivers, and may overlap another."""
    chosen = {"SharedRuns": str(runs), "WarmDrivers": "2"}
    found = capacity(Account().allows(4000).site, DEFAULTS, chosen)
    hour = most_use(SHARED, replace(SETTINGS, job_timeout_minutes=60))
    assert int(found["SharedMaximumCpu"]) == runs * hour.vcpu_hours + 2
    assert int(found["SharedMaximumMemory"]) == runs * hour.memory_gb_hours + 8
    assert int(found["SharedConcurrentRuns"]) >= runs + 1


def test_a_new_account_gets_fewer_runs_and_the_command_that_requests_more() -> None:
    """The quota of a new account, 16 vCPUs, allows a shared and an own run, and that is said."""
    account = Account().allows(16)
    found = capacity(account.site, DEFAULTS, {})
    assert (found["SharedMaximumCpu"], found["MaximumCpu"]) == ("5", "11")
    assert (found["ConcurrentRuns"], found["MaximumMemory"]) == ("1", "44")
    (told,) = account.told
    assert "gets 5 for shared runs and 11 for 1 own runs" in told
    assert "--quota-code L-D05C8A75 --desired-value 69" in told


def test_an_account_without_an_applied_quota_has_the_default_one() -> None:
    """Service Quotas retrieves no quota of which "only the default values are available"."""
    account = Account().allows(16)
    stubber = Stubber(boto3.client("service-quotas", "us-east-1", **KEYS))
    stubber.add_client_error("get_service_quota", "NoSuchResourceException", http_status_code=400)
    default = {"Quota": {"QuotaCode": "L-D05C8A75", "Value": 16.0}}
    stubber.add_response("get_aws_default_service_quota", default)
    stubber.activate()
    account.has("service-quotas", stubber.client)
    assert capacity(account.site, DEFAULTS, {})["MaximumCpu"] == "11"


def test_without_shared_runs_own_ones_get_all() -> None:
    """Nothing is set aside where no shared run is ever started."""
    found = capacity(Account().allows(16).site, DEFAULTS, {"SharedRuns": "0"})
    assert (found["MaximumCpu"], found["ConcurrentRuns"]) == ("16", "2")


def test_more_runs_than_fit_are_refused() -> None:
    """A setting by which drivers could fill the capacity is refused with the numbers."""
    with pytest.raises(LakegateError, match=r"BAD_SETTING.*9.*enough for 8"):
        capacity(Account().allows(4000).site, DEFAULTS, {"ConcurrentRuns": "9"})


def test_large_workers_have_room_beside_each_other() -> None:
    """Drivers of much memory leave enough of it for executors; a chosen amount bounds the runs."""
    large = {"JobWorkerMemory": "27g"}  # and a tenth more: 30 GB a worker
    found = capacity(Account().allows(4000).site, DEFAULTS, large)
    assert (found["ConcurrentRuns"], found["MaximumMemory"]) == ("8", "480")
    found = capacity(Account().allows(4000).site, DEFAULTS, {**large, "MaximumMemory": "256"})
    assert (found["ConcurrentRuns"], found["MaximumMemory"]) == ("4", "256")
    refused = {**large, "MaximumMemory": "256", "ConcurrentRuns": "5"}
    with pytest.raises(LakegateError, match=r"BAD_SETTING.*256 GB are enough for 4 runs.*30 GB"):
        capacity(Account().allows(4000).site, DEFAULTS, refused)
    found = capacity(
        Account().allows(4000).site, DEFAULTS, {"JobWorkerCores": "8", "JobWorkerMemory": "29g"}
    )
    assert found["MaximumMemory"] == str(4 * 2 * 32), "EMR rounds 31.9 GB up to a multiple of 4"


_TOO_LITTLE = [
    ({"MaximumCpu": "7"}, "MaximumCpu is '7': it must be 8 at least, for a run's driver and exec"),
    ({"MaximumMemory": "31"}, "MaximumMemory is '31': it must be 32 at least, for a run's driver"),
    (
        {"SharedMaximumCpu": "3"},
        "SharedMaximumCpu is '3': it must be 4 at least, for drivers and executors of 2 shared",
    ),
    ({"SharedMaximumMemory": "15"}, "SharedMaximumMemory is '15': it must be 16 at least"),
    ({"SharedMaximumCpu": "5", "WarmDrivers": "4"}, "SharedMaximumCpu is '5': it must be 6"),
    (
        {"SharedRuns": "0", "WarmDrivers": "3", "SharedMaximumCpu": "2"},
        "SharedMaximumCpu is '2': it must be 3 at least, for WarmDrivers",
    ),
]


@pytest.mark.parametrize(("chosen", "said"), _TOO_LITTLE)
def test_a_capacity_in_which_runs_would_wait_for_ever_is_refused(
    chosen: dict[str, str], said: str
) -> None:
    """EMR takes it, and starts drivers whose executors never fit."""
    with pytest.raises(LakegateError, match=f"BAD_SETTING: {said}"):
        refuse_unfit(DEFAULTS, chosen)


@pytest.mark.parametrize("warm", ["0", "1", "7"])
@pytest.mark.parametrize("runs", ["0", "1", "3"])
def test_what_is_derived_for_shared_runs_is_enough(runs: str, warm: str) -> None:
    """Whatever a stage says of their number, the capacity that it gets holds them."""
    refuse_unfit(DEFAULTS, {"SharedRuns": runs, "WarmDrivers": warm})


_NO_NUMBERS = {"MaximumCpu": "64 vCPU", "ConcurrentRuns": "two", "SharedRuns": ""}


@pytest.mark.parametrize(
    ("name", "text"), [*_NO_NUMBERS.items(), ("WarmDrivers", "-1"), ("JobWorkerCores", "0")]
)
def test_a_setting_that_is_no_number_is_refused(name: str, text: str) -> None:
    """The error names the setting and its text, before anything is deployed."""
    with pytest.raises(LakegateError, match=rf"BAD_SETTING: {name} is '{text}'"):
        capacity(Account().allows(4000).site, DEFAULTS, {name: text})


def test_a_quota_below_one_run_is_refused() -> None:
    """An account in which no run could ever start gets no deployment."""
    refusal = r"NO_CAPACITY.*8 vCPUs and shared runs take 5, .*12 vCPUs at a time"
    with pytest.raises(LakegateError, match=refusal):
        capacity(Account().allows(12).site, DEFAULTS, {})


def test_what_other_stages_may_take_is_left_to_them() -> None:
    """Drivers of several stages cannot fill the quota together; the stage itself is no other."""
    prod = {"lakegate-prod": "35 vCPU", "lakegate-prod-shared": "5 vCPU"}
    dev = {"lakegate-dev": "64vCPU", "lakegate-dev-shared": "5vCPU"}
    account = Account().allows(64, **prod, **dev, theirs="99 vCPU")
    found = capacity(account.site, DEFAULTS, {})
    assert (found["MaximumCpu"], found["ConcurrentRuns"]) == ("19", "2")
    (told,) = account.told
    assert "up to 40 of them (prod 35, prod-shared 5): this one gets 5 for shared" in told
    assert "--desired-value 109" in told


def test_a_quota_that_other_stages_may_fill_is_refused() -> None:
    """The message names the stages, and both ways out."""
    message = r"NO_CAPACITY.*prod 16\)\nLower MaximumCpu of another stage .*--desired-value 29"
    with pytest.raises(LakegateError, match=message):
        capacity(Account().allows(16, **{"lakegate-prod": "16 vCPU"}).site, DEFAULTS, {})


def test_zones_are_chosen_by_their_ids() -> None:
    """In us-east-1 EMR Serverless has no use1-az3, which is another letter in each account."""
    account = Account().has_zones(
        {"use1-az3": "us-east-1a", "use1-az1": "us-east-1b", "use1-az2": "us-east-1c"}
    )
    assert zones(account.site) == {"ZoneA": "us-east-1b", "ZoneB": "us-east-1c"}


def test_a_region_without_limits_gives_its_first_two_zones() -> None:
    """Where EMR Serverless is in all zones the first two are taken."""
    found = {"euc1-az2": "eu-central-1a", "euc1-az3": "eu-central-1b", "euc1-az1": "eu-central-1c"}
    account = Account("eu-central-1").has_zones(found)
    assert zones(account.site) == {"ZoneA": "eu-central-1c", "ZoneB": "eu-central-1a"}


def test_too_few_zones_are_refused() -> None:
    """A region with one usable zone is refused by name."""
    account = Account().has_zones({"use1-az3": "us-east-1a", "use1-az1": "us-east-1b"})
    with pytest.raises(LakegateError, match=r"NO_ZONES.*us-east-1"):
        zones(account.site)


class Applications:
    """EMR Serverless's client; while the shared application stops, the other one gets a run."""

    exceptions = boto3.client("emr-serverless", "us-east-1", **KEYS).exceptions

    def __init__(self) -> None:
        self.states = {"own": "STARTED", "shared": "STARTED"}
        self.stopped: list[str] = []

    def get_application(self, applicationId: str) -> dict[str, Any]:  # noqa: N803
        return {"application": {"state": self.states[applicationId]}}

    def stop_application(self, applicationId: str) -> None:  # noqa: N803
        if applicationId == "shared":
            self.states["own"] = "STARTED"
        self.states[applicationId] = "STOPPED"
        self.stopped.append(applicationId)


def test_all_applications_rest_before_they_are_changed() -> None:
    """A run that starts one again, while the next is waited for, is waited for as well."""
    account, applications = Account(), Applications()
    account.has("emr-serverless", applications)
    kinds = {"EmrApplication": "own", "EmrSharedApplication": "shared"}
    listed = [
        {
            "LogicalResourceId": name,
            "PhysicalResourceId": id_,
            "ResourceType": APPLICATION,
            "LastUpdatedTimestamp": datetime.now(UTC),
            "ResourceStatus": "CREATE_COMPLETE",
        }
        for name, id_ in kinds.items()
    ]
    account.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": listed})
    stop_for(account.site, [Change(name, APPLICATION, "Modify") for name in kinds], seconds=60)
    assert applications.states == dict.fromkeys(applications.states, "STOPPED")
    assert applications.stopped == ["own", "shared", "own"]
