"""What the account gives to EMR Serverless: zones and vCPUs; how its applications are stopped."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from infra.aws.site import Site
from infra.cloudformation import Change, Tell, translated
from lakegate.errors import LakegateError
from lakegate.job.workers import rounded

APPLICATION = "AWS::EMRServerless::Application"

# EMR Serverless's zones in the regions that have others as well (EMR Serverless User Guide,
# "Endpoints and quotas"). A zone's id is the same in every account, its name is not.
_ZONES = {
    "us-east-1": ("use1-az1", "use1-az2", "use1-az4", "use1-az5", "use1-az6"),
    "us-west-1": ("usw1-az1", "usw1-az3"),
    "ca-central-1": ("cac1-az1", "cac1-az2"),
}
_QUOTA = "L-D05C8A75"  # "Max concurrent vCPUs per account"; 16 in a new account
_GB_OF_A_CPU = 4
_OF_A_SHARED_RUN = 5  # a driver and four executors of 1 vCPU each (functions/adapters/emr.py)
_OF_A_STAGE = "lakegate-"  # how the name of a stage's application begins
_PAUSE = 1.0
_RESTS = ("CREATED", "STOPPED", "TERMINATED")


def zones(site: Site) -> dict[str, str]:
    """Return the parameters ZoneA and ZoneB, as deployed if the platform exists.

    Raises LakegateError NO_ZONES if fewer than two zones have EMR Serverless.
    """
    if site.stacks.exists(site.stage.platform_stack):
        deployed = site.stacks.parameters(site.stage.platform_stack)
        return {name: deployed[name] for name in ("ZoneA", "ZoneB") if name in deployed}
    with _translated("the region's availability zones", "ec2:DescribeAvailabilityZones"):
        kinds = [{"Name": "zone-type", "Values": ["availability-zone"]}]
        offered = site.client("ec2").describe_availability_zones(Filters=kinds)["AvailabilityZones"]
    names = {each["ZoneId"]: each["ZoneName"] for each in offered if each["State"] == "available"}
    fit = [names[id_] for id_ in sorted(names) if id_ in _ZONES.get(site.stage.region, names)]
    if len(fit) < 2:
        message = f"EMR Serverless needs two zones, and {site.stage.region} has {len(fit)} for you"
        raise LakegateError("NO_ZONES", f"{message}: deploy to another region")
    return {"ZoneA": fit[0], "ZoneB": fit[1]}


def refuse_unfit(defaults: Mapping[str, str], chosen: Mapping[str, str]) -> None:
    """Raise LakegateError BAD_SETTING for a capacity in which runs would wait for ever.

    EMR Serverless takes it, and starts a run whose driver fits, though its executor never does.
    """
    known = {**defaults, **chosen}
    known |= _for_shared_runs(known, chosen)
    faults = [
        f"{name} is {known[name]!r}: it must be {least} at least, {why}"
        for name, least, why in (*_least_for_own_runs(known), *_least_for_shared_runs(known))
        if _number(known, name) < least
    ]
    if faults:
        raise LakegateError("BAD_SETTING", "\n".join(faults))


def _least_for_own_runs(known: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield the settings of own runs' capacity, each with its least value and the reason."""
    cores, gigabytes = _worker(known)
    why = f"for a run's driver and executor of {cores} vCPUs and {gigabytes} GB each"
    yield "MaximumCpu", 2 * cores, why
    yield "MaximumMemory", 2 * gigabytes, why


def _least_for_shared_runs(known: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield the same of shared runs; warm drivers take their place while they are idle, too."""
    most, warm = _number(known, "SharedConcurrentRuns", 1), _number(known, "WarmDrivers")
    runs = min(most, 2 * _number(known, "SharedRuns"))
    workers, why = max(runs, warm) + runs, f"for drivers and executors of {runs} shared runs"
    if not _number(known, "SharedRuns"):
        workers, why = warm, "for WarmDrivers"
    yield "SharedMaximumCpu", workers, why
    yield "SharedMaximumMemory", _GB_OF_A_CPU * workers, why


def capacity(site: Site, defaults: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of both applications' capacity, within the quota.

    What shared runs need is set aside first, so that no own run takes it. EMR Serverless starts a
    run when its driver fits, so runs without room for an executor would wait for each other for
    ever. An own run takes two workers at least, of full size. What other stages of the account may
    take is left to them.

    Raises LakegateError BAD_SETTING if the settings allow too many runs, NO_CAPACITY if not even
    one own run fits into the quota beside the shared ones.
    """
    known = {**defaults, **chosen}
    wanted, (cores, gigabytes) = _number(known, "MaximumCpu", 1), _worker(known)
    shared = _for_shared_runs(known, chosen)
    aside = _number(shared, "SharedMaximumCpu", 1) if _number(known, "SharedRuns") else 0
    quota = _quota(site)
    cpus = min(wanted, quota.left - aside)
    runs = cpus // (2 * cores)
    if runs <= 0:
        raise _no_capacity(quota, 2 * cores, aside)
    memory = max(_GB_OF_A_CPU * cpus, 2 * gigabytes * runs)
    if "MaximumMemory" in chosen:
        memory = _number(chosen, "MaximumMemory", 1)
        runs = min(runs, memory // (2 * gigabytes))
    if "ConcurrentRuns" in chosen and _number(chosen, "ConcurrentRuns", 1) > runs:
        message = (
            f"ConcurrentRuns is {chosen['ConcurrentRuns']}, and {cpus} vCPUs and {memory} GB are"
            f" enough for {runs} runs with a driver and an executor of {cores} vCPUs and"
            f" {gigabytes} GB each: lower it, or raise MaximumCpu, MaximumMemory and the quota"
        )
        raise LakegateError("BAD_SETTING", message)
    if cpus < wanted:
        request = _request(wanted + aside + quota.taken)
        gets = f"this one gets {aside} for shared runs and {cpus} for {runs} own runs at a time"
        site.tell(f"{quota.told}: {gets}; {request}")
    return {
        **shared,
        "MaximumCpu": str(cpus),
        "MaximumMemory": str(memory),
        "ConcurrentRuns": chosen.get("ConcurrentRuns", str(runs)),
    }


def _worker(known: Mapping[str, str]) -> tuple[int, int]:
    """Return the vCPUs of an own run's worker, and its gigabytes; a tenth comes to the JVM's."""
    cores = _number(known, "JobWorkerCores", 1)
    jvm = int(known["JobWorkerMemory"].removesuffix("g"))
    return cores, rounded(cores, jvm * 11 / 10)


def _number(settings: Mapping[str, str], name: str, least: int = 0) -> int:
    """Return a setting's number. Raises LakegateError BAD_SETTING."""
    text = settings[name]
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        message = f"{name} is {text!r}: it must be a whole number, {least} at least"
        raise LakegateError("BAD_SETTING", message)
    return int(text)


def _for_shared_runs(known: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the capacity of the application of shared runs; a run may overlap the next one."""
    runs = _number(known, "SharedRuns")
    cpus = max(_OF_A_SHARED_RUN * runs + _number(known, "WarmDrivers"), 1)
    fitting = {
        "SharedMaximumCpu": cpus,
        "SharedMaximumMemory": _GB_OF_A_CPU * cpus,
        "SharedConcurrentRuns": max(2 * runs, 1),
    }
    return {name: chosen.get(name, str(number)) for name, number in fitting.items()}


@dataclass(frozen=True)
class _Quota:
    """The vCPUs that an account may use at a time, and the most that its other stages take."""

    cpus: int
    others: Mapping[str, int]

    @property
    def taken(self) -> int:
        """Return the most that all other stages take together."""
        return sum(self.others.values())

    @property
    def left(self) -> int:
        """Return what is left for this stage."""
        return self.cpus - self.taken

    @property
    def told(self) -> str:
        """Return it in words."""
        words = f"the account may use {self.cpus} vCPUs at a time"
        stages = ", ".join(f"{name} {cpus}" for name, cpus in sorted(self.others.items()))
        return f"{words}, other stages up to {self.taken} of them ({stages})" if stages else words


def _no_capacity(quota: _Quota, least: int, aside: int) -> LakegateError:
    lower = "lower MaximumCpu of another stage and deploy it, or " if quota.others else ""
    message = f"an own run takes {least} vCPUs and shared runs take {aside}, and {quota.told}\n"
    remedy = f"{lower}{_request(least + aside + quota.taken)}"
    return LakegateError("NO_CAPACITY", message + remedy[0].upper() + remedy[1:])


def _quota(site: Site) -> _Quota:
    """Return the account's quota: the default one while it has no applied value."""
    client = site.client("service-quotas")
    asked = {"ServiceCode": "emr-serverless", "QuotaCode": _QUOTA}
    rights = "servicequotas:GetServiceQuota and GetAWSDefaultServiceQuota"
    with _translated("the quota of EMR Serverless", rights):
        try:
            answer = client.get_service_quota(**asked)
        except client.exceptions.NoSuchResourceException:
            answer = client.get_aws_default_service_quota(**asked)
    return _Quota(int(answer["Quota"]["Value"]), _others(site))


def _others(site: Site) -> dict[str, int]:
    """Return the most vCPUs that applications of the account's other stages take, by name."""
    with _translated("the EMR Serverless applications", "emr-serverless:ListApplications"):
        pages = site.client("emr-serverless").get_paginator("list_applications").paginate()
        every = [each for page in pages for each in page["applications"]]
    ids = {each.get("name", ""): each["id"] for each in every if each["state"] != "TERMINATED"}
    own = f"{_OF_A_STAGE}{site.stage.name}"
    return {
        name.removeprefix(_OF_A_STAGE): _most_cpus(_described(site, id_))
        for name, id_ in ids.items()
        if name.startswith(_OF_A_STAGE) and name not in (own, f"{own}-shared")
    }


def _most_cpus(application: Mapping[str, Any]) -> int:
    matched = re.match(r"\d+", application.get("maximumCapacity", {}).get("cpu", ""))
    return int(matched[0]) if matched else 0


def _request(cpus: int) -> str:
    return (
        "request more with `aws service-quotas request-service-quota-increase"
        f" --service-code emr-serverless --quota-code {_QUOTA} --desired-value {cpus}`"
    )


def release(site: Site, application: str) -> str:
    """Return the release label of an application. Raises LakegateError EMR_UNAVAILABLE."""
    return str(_described(site, application)["releaseLabel"])


def _described(site: Site, application: str) -> dict[str, Any]:
    with _translated("the EMR Serverless application", "emr-serverless:GetApplication"):
        answer = site.client("emr-serverless").get_application(applicationId=application)
    return dict(answer["application"])


def stop_for(site: Site, changes: Iterable[Change], seconds: float) -> None:
    """Stop each application that a change of the platform concerns; its next run starts it again.

    CloudFormation can neither change nor delete an application that is STARTED, which it stays for
    its idle time. All rest at once when this returns. Runs are not cancelled: raises LakegateError
    IN_FLIGHT after `seconds`.
    """
    concerned = {
        each.resource for each in changes if each.type == APPLICATION and each.action != "Add"
    }
    if not concerned:
        return
    deadline, client = time.monotonic() + seconds, site.client("emr-serverless")
    every = site.stacks.resources(site.stage.platform_stack)
    ids = [each.id for each in every if each.name in concerned]
    with _translated("the EMR Serverless application", "emr-serverless:StopApplication"):
        while not all(_rests(client, id_) for id_ in ids):
            for id_ in ids:
                _stop(client, id_, deadline, site.tell)


def _rests(client: Any, id_: str) -> bool:
    return client.get_application(applicationId=id_)["application"]["state"] in _RESTS


def _stop(client: Any, id_: str, deadline: float, tell: Tell) -> None:
    """Stop the application once its runs have ended; it is asked again if it has a new run."""
    refusal = ""
    while not _rests(client, id_):
        try:
            client.stop_application(applicationId=id_)
        except client.exceptions.ValidationException as error:
            if not refusal:
                tell("waiting until no job runs: the EMR Serverless application must be stopped")
            refusal = str(error)
        if time.monotonic() > deadline:
            message = f"the EMR Serverless application cannot be stopped now: {refusal}"
            raise LakegateError("IN_FLIGHT", f"{message}; run this again when no job runs")
        time.sleep(_PAUSE)


def _translated(what: str, right: str) -> AbstractContextManager[None]:
    message = f"{what} cannot be read or changed; you need the right {right}"
    return translated("EMR_UNAVAILABLE", message)
