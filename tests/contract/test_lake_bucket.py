"""The lake's bucket behaves alike in memory and on S3."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from functions.adapters.s3 import Lake, Missing, Overwritten
from functions.model.notes.checkpoint import Checkpoint, TableCount
from lakegate.audit.drift import Baselines, Series, Value
from lakegate.audit.report import to_lines
from lakegate.contract.model import ContractInvalid, parse
from lakegate.errors import Permanent, Transient
from lakegate.job.change import Change
from lakegate.job.upkeep import Comparison, Fingerprint
from tests.contract.aws import ACCOUNT
from tests.contract.buckets import LIMITS, Buckets, bucket
from tests.contract.conftest import Servers
from tests.fakes.clock import FakeClock
from tests.fakes.deployment import ORDERS, RETURNS
from tests.fakes.examples import REPORT
from tests.fakes.storage import FakeLake, FakeLanding

ITEMS = ORDERS.replace("shop.orders", "shop.items")


def test_a_contract_has_a_limit(buckets: Buckets) -> None:
    """A contract at the size limit is in force; one byte more is an error."""
    text = ORDERS.encode() + b"#" * (LIMITS.largest_contract - len(ORDERS))
    buckets.put_text("contracts/shop.orders.yaml", text)
    assert [stored.contract.table for stored in buckets.lake.contracts()] == ["shop.orders"]
    buckets.put_text("contracts/shop.orders.yaml", text + b"#")
    with pytest.raises(Permanent, match=r"TOO_LARGE: contracts/shop\.orders\.yaml"):
        buckets.lake.contracts()


def test_a_report_has_a_limit(buckets: Buckets) -> None:
    """A report at the size limit is read; one byte more is an error."""
    text = REPORT.to_json().encode()
    text += b" " * (LIMITS.largest_report - len(text))
    buckets.put_text("reports/a.b/1/1.json", text)
    assert buckets.lake.report("reports/a.b/1/1.json") == REPORT
    buckets.put_text("reports/a.b/1/1.json", text + b" ")
    with pytest.raises(Permanent, match=r"TOO_LARGE: reports/a\.b/1/1\.json"):
        buckets.lake.report("reports/a.b/1/1.json")


def test_the_reports_of_a_group_are_read_at_once(buckets: Buckets) -> None:
    """An object that repeats several reports is read with one request, up to the limit."""
    key = f"reports/a.b/group-{16 * 'a'}.json"
    with pytest.raises(Missing, match=re.escape(key)):
        buckets.lake.group_reports(key)
    both = [replace(REPORT, attempt=attempt) for attempt in (1, 2)]
    buckets.put_text(key, to_lines(both))
    assert buckets.lake.group_reports(key) == {each.key: each for each in both}
    buckets.put_text(key, to_lines(both) + b"\n{}")
    with pytest.raises(Permanent, match=f"BAD_REPORT: the audit report {re.escape(key)} "):
        buckets.lake.group_reports(key)
    buckets.put_text(key, to_lines(both) + b" " * LIMITS.largest_report)
    with pytest.raises(Permanent, match=f"TOO_LARGE: {re.escape(key)}"):
        buckets.lake.group_reports(key)


def test_reports_are_listed(buckets: Buckets) -> None:
    """The keys of all reports are listed, each once, and nothing else."""
    assert list(buckets.lake.reports()) == []
    reports = ["reports/a.b/1/1.json", "reports/a.b/1/2.json"]
    together = f"reports/a.b/group-{16 * 'a'}.json"
    for key in (*reports, reports[0], together, "contracts/a.b.yaml", "warehouse/x"):
        buckets.put_text(key, b"{}")
    assert list(buckets.lake.reports()) == reports


@pytest.mark.parametrize("strangers", [0, 200, 2000])
def test_the_reports_of_some_ingestions_are_listed(buckets: Buckets, strangers: int) -> None:
    """Of some, and of many, only their own folders are listed, and of thousands all reports."""
    reports = ["reports/a.b/1/1.json", "reports/a.b/1/2.json", "reports/a.c/2/1.json"]
    for key in (*reports, "reports/a.b/11/1.json"):
        buckets.put_text(key, b"{}")
    wanted = {"1": ["a.b"], "2": ["a.b", "a.c"], "3": ["a.c"]}
    wanted |= {f"none {number}": ["a.b"] for number in range(strangers)}
    listed = list(buckets.lake.reports(wanted))
    assert [key for key in listed if key.split("/")[2] in wanted] == reports
    assert len(listed) == 3 or strangers == 2000


def test_few_reports_are_found_in_any_table(buckets: Buckets) -> None:
    """A contract may have been another: of a few tables all are looked at, likely or not."""
    buckets.put_text("reports/a.b/1/1.json", b"{}")
    assert list(buckets.lake.reports({"1": ["a.c"]})) == ["reports/a.b/1/1.json"]


def test_the_reports_of_a_part_of_an_id_are_listed(buckets: Buckets) -> None:
    """The name of a branch has a table and a part of an id: their reports are found by these."""
    wanted = ["reports/a.b/12ab/1.json", "reports/a.b/12ab/2.json", "reports/a.b/12cd/1.json"]
    for key in (*wanted, "reports/a.b/13ab/1.json", "reports/a.c/12ab/1.json"):
        buckets.put_text(key, b"{}")
    assert list(buckets.lake.reports_of("a.b", "12")) == wanted
    assert list(buckets.lake.reports_of("a.b", "9")) == []


def test_a_contract_in_force_is_known(buckets: Buckets) -> None:
    """A stored contract is in force, with its key and version."""
    contract = parse(ORDERS, "orders")
    key = buckets.lake.put_contract(contract, ORDERS)
    (stored,) = buckets.lake.contracts()
    assert stored.contract == contract
    assert stored.key == key == "contracts/shop.orders.yaml"
    assert stored.version


def test_a_changed_contract_is_in_force_at_once(buckets: Buckets) -> None:
    """The next reading has the new text under a new version."""
    buckets.lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    buckets.lake.put_contract(parse(ITEMS, "items"), ITEMS)
    before = {s.contract.table: s for s in buckets.lake.contracts()}
    changed = ORDERS.replace("1.0.0", "2.0.0")
    buckets.lake.put_contract(parse(changed, "orders"), changed)
    after = {s.contract.table: s for s in buckets.lake.contracts()}
    assert after["shop.items"] == before["shop.items"]
    assert after["shop.orders"].contract.version == "2.0.0"
    assert after["shop.orders"].version != before["shop.orders"].version


def test_a_contract_is_read_as_it_was(buckets: Buckets) -> None:
    """Each earlier version of a contract can be read."""
    key = buckets.lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    (first,) = buckets.lake.contracts()
    buckets.put_text(key, ORDERS.replace("1.0.0", "2.0.0").encode())
    (second,) = buckets.lake.contracts()
    assert buckets.lake.contract_at(key, first.version) == first
    assert buckets.lake.contract_at(key, second.version) == second
    assert buckets.lake.contract_at(key, first.version).text == ORDERS
    assert buckets.lake.contract_at(key, "") == second


@pytest.mark.parametrize(
    ("key", "version"),
    [("contracts/shop.orders.yaml", 32 * "0"), ("contracts/shop.items.yaml", "")],
)
def test_a_version_that_never_was_is_missing(buckets: Buckets, key: str, version: str) -> None:
    """An unknown version is missing, and the error names the key."""
    buckets.lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    with pytest.raises(Missing, match=re.escape(key)):
        buckets.lake.contract_at(key, version)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"kind: Something", "DataContract"),
        (ORDERS.replace("shop-orders", "Aufträge").encode("latin-1"), "line 3: is not UTF-8 text"),
    ],
)
def test_a_broken_contract_is_refused(buckets: Buckets, text: bytes, problem: str) -> None:
    """An invalid contract is refused by name."""
    buckets.put_text("contracts/shop.orders.yaml", text)
    with pytest.raises(ContractInvalid, match=r"contracts/shop\.orders\.yaml") as refusal:
        buckets.lake.contracts()
    assert problem in refusal.value.message


def test_a_broken_contract_stands_in_no_other_tables_way(buckets: Buckets) -> None:
    """For one landed key, an invalid contract of another table is skipped."""
    buckets.lake.put_contract(parse(ITEMS, "items"), ITEMS)
    buckets.put_text("contracts/shop.orders.yaml", ORDERS.replace("integer", "intger").encode())
    (items,) = buckets.lake.contracts("shop/items/1.csv")
    assert items.contract.table == "shop.items"
    for key in ("shop/orders/1.csv", ""):
        with pytest.raises(ContractInvalid, match=r"contracts/shop\.orders\.yaml"):
            buckets.lake.contracts(key)


@pytest.mark.parametrize("key", ["contracts/", "contracts/README.md", "contracts/.DS_Store"])
def test_an_object_beside_the_contracts_is_not_read(buckets: Buckets, key: str) -> None:
    """Objects beside the contracts are not read."""
    buckets.put_text(key, b"\xff: no contract")
    assert buckets.lake.contracts() == []


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff\xfe", REPORT.to_json().encode()[:-9]])
def test_an_unreadable_report_is_refused(buckets: Buckets, text: bytes) -> None:
    """An unreadable report is a permanent error that names it."""
    buckets.put_text("reports/x/1.json", text)
    with pytest.raises(Permanent, match=r"BAD_REPORT: the audit report reports/x/1\.json "):
        buckets.lake.report("reports/x/1.json")


def test_a_change_is_put_once(buckets: Buckets) -> None:
    """A change is stored and listed once, with its first content."""
    change = Change("shop.orders", "DELETE FROM shop.orders -- Größe", "token", "Ann", "why")
    put = buckets.lake.put_change(change)
    assert buckets.lake.put_change(replace(change, by="Bob")) == put
    assert buckets.lake.change(put.key) == change
    (listed,) = buckets.lake.changes()
    assert list(buckets.lake.changes("shop.orders")) == [listed]
    assert list(buckets.lake.changes("shop.order")) == []
    assert listed.landed_at
    assert replace(listed, landed_at="") == put
    assert put.bucket == buckets.lake.bucket


def test_changes_are_distinguished_from_other_texts(buckets: Buckets) -> None:
    """Only keys of changes are listed, and a missing one is missing."""
    buckets.put_text("changes/shop.orders/notes.txt", b"not one of ours")
    assert list(buckets.lake.changes()) == []
    with pytest.raises(Missing):
        buckets.lake.change(Change("shop.orders", "DELETE FROM shop.orders", "t").key)


def test_objects_are_as_old_as_the_clock_says_in_memory() -> None:
    """The clock of the storage is the one by which objects have their times."""
    clock = FakeClock()
    landing, lake = FakeLanding(clock), FakeLake(clock)
    before = lake.clock()
    landing.put("a.csv", b"a")
    (found,) = landing.landed()
    assert before <= datetime.fromisoformat(found.landed_at) <= lake.clock() + timedelta(seconds=1)


@pytest.mark.stack
def test_objects_are_as_old_as_the_clock_says_on_s3(servers: Servers) -> None:
    """S3's answers have the time, which moto within a process leaves out."""
    lake = Lake(boto3.client("s3", endpoint_url=servers.s3, **ACCOUNT), "lake")
    before = lake.clock()
    lake.put_contract(parse(ORDERS, "orders.yaml"), ORDERS)
    (found,) = (each for each in lake.stored("contracts/") if "shop.orders" in each.key)
    assert before <= found.modified <= lake.clock() + timedelta(seconds=1)


def test_a_storage_without_a_clock_is_refused() -> None:
    """Without S3's time nothing is known about the age of objects."""
    client = boto3.client("s3", **ACCOUNT)
    answer: dict[str, Any] = {"ResponseMetadata": {"HTTPHeaders": {}}}
    with Stubber(client) as stubbed:
        stubbed.add_response("head_bucket", answer, {"Bucket": "lake"})
        with pytest.raises(Transient, match="what time it is"):
            Lake(client, "lake").clock()


def test_deleted_objects_are_gone(buckets: Buckets) -> None:
    """Exactly the named objects are deleted; repeating it is no error."""
    for name in ("a", "b ü+", "c"):
        buckets.put_text(f"reports/{name}", REPORT.to_json().encode())
    for _ in range(2):
        buckets.lake.delete_objects(["reports/a", "reports/b ü+"])
        buckets.lake.delete_objects([])
    for name in ("a", "b ü+"):
        with pytest.raises(Missing, match=re.escape(f"reports/{name}")):
            buckets.lake.report(f"reports/{name}")
    assert buckets.lake.report("reports/c") == REPORT


def test_a_deleted_object_can_be_had_back(s3: Any) -> None:
    """A versioned bucket keeps a deleted version behind its marker."""
    lake = Lake(s3, bucket(s3))
    s3.put_object(Bucket=lake.bucket, Key="a", Body=b"x")
    lake.delete_objects(["a"])
    found = s3.list_object_versions(Bucket=lake.bucket)
    assert [each["Key"] for each in found["Versions"]] == ["a"]
    assert [each["Key"] for each in found["DeleteMarkers"]] == ["a"]


def test_more_are_deleted_than_fit_a_request(s3: Any) -> None:
    """More objects are deleted than one request of a thousand takes."""
    lake = Lake(s3, bucket(s3))
    for number in (0, 999, 1000, 1001):
        s3.put_object(Bucket=lake.bucket, Key=f"{number}", Body=b"")
    lake.delete_objects([f"{number}" for number in range(1002)])
    assert s3.list_objects_v2(Bucket=lake.bucket)["KeyCount"] == 0


def test_a_deletion_that_is_refused_is_reported() -> None:
    """S3 answers 200 and lists the objects that it did not delete: that is an error."""
    client = boto3.client("s3", **ACCOUNT)
    with Stubber(client) as stubber:
        refused = {"Errors": [{"Key": "a", "Code": "AccessDenied"}]}
        stubber.add_response("delete_objects", refused)
        with pytest.raises(Transient, match=r"RIGHT_MISSING.*a: AccessDenied"):
            Lake(client, "lake").delete_objects(["a"])


def test_a_contract_is_read_once_a_version(s3: Any) -> None:
    """An unchanged contract is not fetched again: only the listing is."""
    lake = Lake(s3, bucket(s3))
    lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    read: list[object] = []
    s3.meta.events.register_first("before-call.s3.GetObject", lambda **call: read.append(call))
    assert lake.contracts() == lake.contracts()
    assert len(read) == 1


def test_contracts_are_read_several_at_a_time(s3: Any) -> None:
    """A new process reads all there are: thousands, one by one, take longer than it has."""
    both = Barrier(2, timeout=10)

    def meet(**_: Any) -> None:
        both.wait()

    lake = Lake(s3, bucket(s3))
    for text in (ORDERS, ITEMS):
        lake.put_contract(parse(text, "a contract"), text)
    s3.meta.events.register("before-call.s3.GetObject", meet)
    try:
        assert {each.contract.table for each in lake.contracts()} == {"shop.orders", "shop.items"}
    finally:
        s3.meta.events.unregister("before-call.s3.GetObject", meet)


def test_a_batch_of_messages_lists_the_contracts_once(s3: Any) -> None:
    """Work that lists the contracts once has those of that moment; the next work has the newer."""
    lake = Lake(s3, bucket(s3))
    lake.put_contract(parse(ORDERS, "orders"), ORDERS)
    work = lake.listed_once()
    assert work.contracts()
    lake.put_contract(parse(RETURNS, "returns"), RETURNS)
    assert [each.contract.table for each in work.contracts()] == ["shop.orders"]
    assert len(lake.listed_once().contracts()) == len(lake.contracts()) == 2


def test_baselines_replace_only_what_they_were_made_from(buckets: Buckets) -> None:
    """Baselines begin empty; of two writers with the same base the second is refused."""
    lake = buckets.lake
    first = Baselines("shop.orders", {"d@r": Series((Value("a", "2026", 1.5),))})
    second = Baselines("shop.orders", {"d@r": Series((Value("b", "2026", 2.5),))})
    assert lake.baselines("shop.orders") == (Baselines("shop.orders"), "")
    lake.put_baselines(first, "")
    with pytest.raises(Overwritten):
        lake.put_baselines(second, "")
    kept, etag = lake.baselines("shop.orders")
    assert kept == first
    lake.put_baselines(second, etag)
    with pytest.raises(Overwritten):
        lake.put_baselines(first, etag)
    assert lake.baselines("shop.orders")[0] == second


def test_a_checkpoint_replaces_only_the_one_that_it_was_made_from(buckets: Buckets) -> None:
    """Of two checkpoints with the same base the second is refused."""
    lake = buckets.lake
    assert lake.checkpoint() == (None, "")
    first = Checkpoint("a" * 64, "2026-03-01", {"shop.orders": TableCount(3, 4, -1)})
    lake.put_checkpoint(first, "")
    with pytest.raises(Overwritten):
        lake.put_checkpoint(first, "")
    found, etag = lake.checkpoint()
    assert found == first
    second = Checkpoint("b" * 64, "2026-03-02")
    lake.put_checkpoint(second, etag)
    with pytest.raises(Overwritten):
        lake.put_checkpoint(first, etag)
    assert lake.checkpoint()[0] == second


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"schema": "other/1"}'])
def test_an_invalid_checkpoint_is_refused(buckets: Buckets, text: bytes) -> None:
    """An invalid checkpoint is an error that says what to do."""
    buckets.put_text("reconcile/checkpoint.json", text)
    with pytest.raises(Permanent, match=r"BAD_CHECKPOINT.*delete it"):
        buckets.lake.checkpoint()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_data_file_that_was_deleted_is_gone(buckets: Buckets, scheme: str) -> None:
    """A deleted data file is gone; an existing one is not, also where Hadoop wrote its address."""
    buckets.put_text("warehouse/a.parquet", b"rows")
    address = f"{scheme}://{buckets.lake.bucket}/warehouse/a.parquet"
    assert not buckets.lake.is_gone(address)
    buckets.lake.delete_objects(["warehouse/a.parquet"])
    assert buckets.lake.is_gone(address)


def test_stored_objects_are_listed(s3: Any) -> None:
    """Objects under a prefix are listed with size and time, without deleted ones."""
    lake = Lake(s3, bucket(s3))
    for name, body in (("a b", b"rows"), ("b", b""), ("c", b"x")):
        s3.put_object(Bucket=lake.bucket, Key=f"warehouse/{name}", Body=body)
    s3.put_object(Bucket=lake.bucket, Key="reports/a", Body=b"x")
    lake.delete_objects(["warehouse/c"])
    found = list(lake.stored("warehouse/"))
    assert [(each.key, each.bytes) for each in found] == [("warehouse/a b", 4), ("warehouse/b", 0)]
    assert all(each.modified.tzinfo for each in found)


def test_the_report_of_a_comparison_is_read(buckets: Buckets) -> None:
    """A report is what the job wrote; a missing one and another text are errors."""
    one = Fingerprint(3, "12")
    report = Comparison("shop.orders", "upkeep/a", "b" * 64, "c" * 64, one, one)
    buckets.put_text("upkeep/x.json", report.to_json().encode())
    assert buckets.lake.comparison("upkeep/x.json") == report
    with pytest.raises(Missing):
        buckets.lake.comparison("upkeep/y.json")
    buckets.put_text("upkeep/y.json", b"[]")
    with pytest.raises(Permanent, match="BAD_REPORT"):
        buckets.lake.comparison("upkeep/y.json")
