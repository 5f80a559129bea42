"""The job reads landed objects, contracts and baselines from S3."""

import pickle
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import LandedObject
from lakegate.job.shared_run import SharedRun
from lakegate.limits import Limits
from spark_jobs.lake.storage import Replaced, Storage
from spark_jobs.shared.serving import means
from spark_jobs.shared.taken_files import TakenFiles
from tests.fakes.deployment import ORDERS
from tests.unit.lakegate.test_jobspec import SPEC

BODY = b"id\n1\n"


def landed(s3: Any, key: str) -> JobSpec:
    """Return the job's spec for a file landed under a key."""
    put = s3.put_object(Bucket="landing", Key=key, Body=BODY)
    etag = put["ETag"].strip('"')
    found = LandedObject("landing", key, put["VersionId"], etag, len(BODY))
    return replace(SPEC, landed=found)


def read(s3: Any, address: str) -> bytes:
    """Return the content at an address that the job gives to Spark."""
    bucket, _, key = address.removeprefix("s3a://").partition("/")
    return bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())


@pytest.mark.parametrize("key", ["shop/orders/monday.csv", "shop/orders/mon day.csv"])
def test_a_version_behind_a_delete_marker_is_read(job_s3: Any, key: str) -> None:
    """A landed version behind a delete marker is read."""
    spec = landed(job_s3, key)
    job_s3.delete_object(Bucket="landing", Key=key)
    with Storage(spec, job_s3, None).pinned() as address:
        assert read(job_s3, address) == BODY


def test_a_key_deleted_while_it_was_read_is_read_again(job_s3: Any) -> None:
    """After a delete marker appears while Spark reads, the next try reads a copy."""
    spec = landed(job_s3, "shop/orders/monday.csv")
    storage = Storage(spec, job_s3, None)
    with ExitStack() as reading:
        address = reading.enter_context(storage.pinned())
        assert address == "s3a://landing/shop/orders/monday.csv"
        job_s3.delete_object(Bucket="landing", Key=spec.landed.key)
        with pytest.raises(Replaced):
            reading.close()
    with storage.pinned() as again:
        assert read(job_s3, again) == BODY


def test_a_version_that_was_deleted_itself_is_gone(job_s3: Any) -> None:
    """A deleted version is reported as gone, whatever other versions the key has."""
    spec = landed(job_s3, "shop/orders/monday.csv")
    where = {"Bucket": "landing", "Key": spec.landed.key}
    job_s3.put_object(**where, Body=b"id\n2\n")
    job_s3.delete_object(**where, VersionId=spec.landed.version)
    with pytest.raises(Permanent, match="OBJECT_GONE"), Storage(spec, job_s3, None).pinned():
        pass


def test_a_contract_is_read_within_the_deployments_limits(job_s3: Any) -> None:
    """The job accepts every contract that the functions accepted within their limits."""
    text = f"{ORDERS}description: {{purpose: '{'x' * (1 << 20)}'}}\n"
    key = "contracts/shop.orders.yaml"
    version = job_s3.put_object(Bucket="lake", Key=key, Body=text.encode())["VersionId"]
    limits = Limits(largest_contract=2 << 20)
    spec = replace(SPEC, contract_key=key, contract_version=version, limits=limits)
    assert Storage(spec, job_s3, None).contract().table == "shop.orders"


def test_reports_are_looked_up_by_one_request_each(job_s3: Any) -> None:
    """A shared run learns at the price of a HEAD request a file which of them have a report."""
    specs = [replace(SPEC, ingestion=f"{n:032x}", report_key=f"reports/{n}") for n in range(30)]
    for spec in specs[::3]:
        job_s3.put_object(Bucket=spec.lake_bucket, Key=spec.report_key, Body=b"{}")
    asked: list[str] = []
    job_s3.meta.events.register("before-call.s3", lambda model, **_: asked.append(model.name))
    run = SharedRun("run", "work", "verdicts", SPEC.lake_bucket, "", "", 60, 60)
    found = TakenFiles(run, means(None, job_s3, None)).reported(specs)  # type: ignore[arg-type] # no Spark
    assert found == {spec.name for spec in specs[::3]}
    assert asked == ["HeadObject"] * 30


def test_a_task_gets_the_buckets_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent to Spark's tasks connects anew there, and cannot read the job's token."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    sent: Storage = pickle.loads(pickle.dumps(Storage(SPEC, object(), object())))  # noqa: S301
    assert (sent.spec, sent.secrets) == (SPEC, None)
    assert sent.s3.meta.region_name == "us-east-1"
