"""Zones and vCPUs of EMR Serverless, as the account has them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from infra import template
from infra.aws.emr import capacity, zones
from infra.aws.site import Site, connect
from infra.stage import Stage
from lakegate.errors import LakegateError

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
            if name not in ("lakegate-dev", "theirs"):
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
    assert found == {"MaximumCpu": "64", "MaximumMemory": "256", "ConcurrentRuns": "8"}
    assert DEFAULTS["ConcurrentRuns"] == found["ConcurrentRuns"]


def test_a_new_account_gets_fewer_runs_and_the_command_that_requests_more() -> None:
    """The quota of a new account, 16 vCPUs, allows two runs, and the deployment says so."""
    account = Account().allows(16)
    found = capacity(account.site, DEFAULTS, {})
    assert found == {"MaximumCpu": "16", "MaximumMemory": "64", "ConcurrentRuns": "2"}
    (told,) = account.told
    assert "--quota-code L-D05C8A75 --desired-value 64" in told


def test_more_runs_than_fit_are_refused() -> None:
    """A setting by which drivers could fill the capacity is refused with the numbers."""
    with pytest.raises(LakegateError, match=r"BAD_SETTING.*9.*enough for 8"):
        capacity(Account().allows(4000).site, DEFAULTS, {"ConcurrentRuns": "9"})


def test_a_quota_below_one_run_is_refused() -> None:
    """An account in which no run could ever start gets no deployment."""
    with pytest.raises(LakegateError, match=r"NO_CAPACITY.*8 vCPUs.*4 vCPUs at a time"):
        capacity(Account().allows(4).site, DEFAULTS, {})


def test_what_other_stages_may_take_is_left_to_them() -> None:
    """Drivers of several stages cannot fill the quota together; the stage itself is no other."""
    others = {"lakegate-prod": "40 vCPU", "lakegate-dev": "64vCPU", "theirs": "99 vCPU"}
    account = Account().allows(64, **others)
    found = capacity(account.site, DEFAULTS, {})
    assert (found["MaximumCpu"], found["ConcurrentRuns"]) == ("24", "3")
    (told,) = account.told
    assert "up to 40 of them (prod 40): this one gets 24" in told
    assert "--desired-value 104" in told


def test_a_quota_that_other_stages_may_fill_is_refused() -> None:
    """The message names the stages, and both ways out."""
    message = r"NO_CAPACITY.*prod 16\)\nLower MaximumCpu of another stage .*--desired-value 24"
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
