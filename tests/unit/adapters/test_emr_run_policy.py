"""The policy of a job run allows its own file and table, and is never too long."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import botocore.session
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from functions.adapters.emr_run_policy import MOST, run_policy, shared_run_policy, widened
from functions.model.notes.compactions import begin
from lakegate.job.batch import BatchFile
from lakegate.job.jobspec import JOB_FILES, JobSpec
from lakegate.job.landing import LandedObject
from lakegate.job.shared_run import SharedRun
from tests.fakes.deployment import SETTINGS
from tests.policies import Identity, matches
from tests.unit.lakegate.test_jobspec import SPEC

ACCOUNT = "000000000000"
LANDING, LAKE = (
    f"lakegate-{'s' * 18}-{kind}-{ACCOUNT}-ap-southeast-1" for kind in ("landing", "lake")
)
SETTINGS_ = replace(
    SETTINGS,
    landing_bucket=LANDING,
    lake_bucket=LAKE,
    job_code=f"s3://{LAKE}/jobs/0123456789abcdef",
)
QUEUES = f"https://sqs.ap-southeast-1.amazonaws.com/{ACCOUNT}/lakegate-{'s' * 18}"
SHARED = SharedRun(
    name="shared-1",
    work_queue=f"{QUEUES}-work",
    verdict_queue=f"{QUEUES}-job-runs",
    lake_bucket=LAKE,
    nessie_uri="http://nessie:19120",
    token_secret="job",
    timeout_minutes=90,
    idle_seconds=60,
)
TAKING = (
    *("sqs:ReceiveMessage", "sqs:DeleteMessage"),
    *("sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"),
)
UUID = "0f0e0d0c-1111-2222-3333-444455556666"
ROLE = {
    "Statement": [
        {"Effect": "Allow", "Action": "*", "Resource": f"arn:aws:s3:::{bucket}{path}"}
        for bucket in (LANDING, LAKE)
        for path in ("", "/*")
    ]
    + [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]
}
KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=1024).filter(
    lambda key: len(key.encode()) <= 1024
)
PLAIN = st.characters(min_codepoint=32, max_codepoint=255, exclude_categories=["Cc"])


def spec(key: str = "shop/orders/a.csv", **changes: Any) -> JobSpec:
    own: dict[str, Any] = {
        "ingestion": "a1" * 16,
        "attempt": 1,
        "landed": LandedObject(LANDING, key, "v1", "e1", 10),
        "table": "shop.orders",
        "lake_bucket": LAKE,
        "contract_key": "contracts/shop.orders.yaml",
        "report_key": f"reports/shop.orders/{'a1' * 16}/1.json",
    }
    return replace(SPEC, **{**own, **changes})


@cache
def _rules() -> dict[str, Any]:
    """Return the API's rules for a policy's text."""
    service = botocore.session.get_session().get_service_model("emr-serverless")
    return dict(service.shape_for("JobRunExecutionIamPolicy").members["policy"].metadata)


def limited(policy: str) -> Identity:
    """Return an account with all rights in both buckets and in SQS, limited by a run's policy.

    It must be one that the API takes.
    """
    rules = _rules()
    assert 1 <= len(policy) <= MOST == rules["max"]
    assert re.fullmatch(rules["pattern"], policy)
    assert json.loads(policy)["Version"] == "2012-10-17"
    return Identity("arn:aws:iam::000000000000:role/job", [ROLE], json.loads(policy))


def narrowed(job_spec: JobSpec) -> Identity:
    """Return what a run of an own file may do."""
    return limited(run_policy(job_spec, SETTINGS_))


def landing(key: str) -> str:
    return f"arn:aws:s3:::{LANDING}/{key}"


def lake(key: str) -> str:
    return f"arn:aws:s3:::{LAKE}/{key}"


@given(KEYS, st.integers(1, 300), st.booleans())
def test_every_policy_is_one_that_the_api_takes(key: str, length: int, reads_others: bool) -> None:
    """For any key and table the policy is JSON of at most 2,048 permitted characters."""
    job_spec = spec(
        key, table=f"shop.{'t' * length}", contract_key=f"contracts/{'c' * length}.yaml"
    )
    assert narrowed(replace(job_spec, reads_others=reads_others))


@given(KEYS)
def test_a_run_may_read_its_landed_object(key: str) -> None:
    """A run may read its landed object, with any characters in its key."""
    run = narrowed(spec(key))
    assert run.may("s3:GetObject", landing(key))
    assert run.may("s3:GetObjectVersion", landing(key))
    assert not run.may("s3:PutObject", landing(key))
    assert not run.may("s3:DeleteObject", landing(key))


@given(st.text(PLAIN, min_size=1), st.text(PLAIN, min_size=1))
def test_a_run_may_read_no_other_landed_object(key: str, other: str) -> None:
    """Wildcards in a key are literal; only unwritable characters widen the policy."""
    assume(other != key and not other.startswith(f"{key}.control."))
    assert not narrowed(spec(key)).may("s3:GetObject", landing(other))


@pytest.mark.parametrize("key", ["a*.csv", "a?.csv", "${aws:username}.csv", "$", "a$b", "é+ü.csv"])
def test_a_key_with_wildcards_stands_for_itself(key: str) -> None:
    """A `*`, a `?` or a variable in a key matches no other key."""
    run = narrowed(spec(key))
    assert run.may("s3:GetObject", landing(key))
    for other in ("abc.csv", "ab.csv", "a.csv", "x.csv", "ayb", "e+u.csv"):
        assert not run.may("s3:GetObject", landing(other))


@pytest.mark.parametrize(
    ("key", "same"),
    [("中文.csv", "日本語.csv"), ("a\n.csv", "ab.csv"), ("*" * 1024, "*" * 1000)],
)
def test_only_what_cannot_be_written_is_widened(key: str, same: str) -> None:
    """Unwritable characters, and the end of a long key, match other keys as well."""
    run = narrowed(spec(key))
    assert run.may("s3:GetObject", landing(key))
    assert run.may("s3:GetObject", landing(same))
    assert not run.may("s3:GetObject", landing("other.parquet"))


def test_a_run_writes_its_own_table_and_what_bears_its_id() -> None:
    """A run writes its table, report, staged copy, results and quarantine, and nothing else."""
    run, ingestion = narrowed(spec()), "a1" * 16
    own = (
        f"warehouse/shop/orders_{UUID}/data/x.parquet",
        f"warehouse/shop/orders_{UUID}/metadata/x.avro",
        f"warehouse/shop/orders_{UUID}/data/_key_digests/x.parquet.01234567-1",
        "warehouse/shop/orders/data/x.parquet",
        f"reports/shop.orders/{ingestion}/1.json",
        f"staging/shop.orders/{ingestion}/1/file.csv",
        f"warehouse/ops/audit_results/data/{ingestion}-1-abcd.parquet",
        f"warehouse/ops/quarantine/data/{ingestion}-1-abcd/part-0.parquet",
    )
    for key in own:
        assert run.may("s3:PutObject", lake(key)), key
        assert run.may("s3:GetObject", lake(key)), key
        assert not run.may("s3:DeleteObject", lake(key)), key
    others = (
        f"warehouse/shop/orders_2_{UUID}/data/x.parquet",
        f"warehouse/shop/orders_20240101_{UUID}/data/x.parquet",
        f"warehouse/shop/customers_{UUID}/data/x.parquet",
        f"reports/shop.orders/{'b2' * 16}/1.json",
        f"reports/shop.orders/group-{16 * 'c'}.json",  # which speaks for others
        f"warehouse/ops/audit_results/data/{'b2' * 16}-1-abcd.parquet",
        "contracts/shop.orders.yaml",
        "jobs/0123456789abcdef/main.py",
        "baselines/shop.orders.json",
    )
    for key in others:
        assert not run.may("s3:PutObject", lake(key)), key


def test_a_run_reads_its_contract_its_baselines_and_its_code() -> None:
    """A run reads the contract, baselines and code of its own table and release only."""
    run = narrowed(spec())
    mine = ("contracts/shop.orders.yaml", "baselines/shop.orders.json")
    code = (f"jobs/0123456789abcdef/{name}" for name in JOB_FILES)
    for key in (*mine, *code):
        assert run.may("s3:GetObject", lake(key)), key
    assert run.may("s3:GetObject", landing("shop/orders/a.csv.control.json"))
    for key in ("contracts/shop.others.yaml", "baselines/a.b.json", "jobs/fedcba/main.py"):
        assert not run.may("s3:GetObject", lake(key)), key


def test_other_tables_are_read_only_where_the_run_has_to() -> None:
    """A run reads other tables only if its checks need them."""
    other = lake(f"warehouse/shop/customers_{UUID}/data/x.parquet")
    assert not narrowed(spec()).may("s3:GetObject", other)
    looking = narrowed(spec(reads_others=True))
    assert looking.may("s3:GetObject", other)
    assert not looking.may("s3:PutObject", other)


def test_a_reaudit_writes_no_data() -> None:
    """A re-audit reads its table and writes only a report."""
    run = narrowed(spec(reaudit_base="h", audited_hash="g", earlier_report="r"))
    data = lake(f"warehouse/shop/orders_{UUID}/data/x.parquet")
    assert run.may("s3:GetObject", data)
    assert not run.may("s3:PutObject", data)
    assert not run.may("s3:GetObject", landing("shop/orders/a.csv"))
    assert run.may("s3:PutObject", lake(f"reports/shop.orders/{'a1' * 16}/1.json"))


def compaction(table: str = "shop.orders", audited_hash: str = "") -> JobSpec:
    """Return the input of a compaction's run, as `compaction.start` makes it."""
    begun = begin(table, "2026-11-23T12:00:00.000+00:00", "abc123")
    own = {"ingestion": begun.id, "branch": begun.branch, "report_key": begun.report_key}
    nothing = LandedObject("", "", "", "", 0)
    told = spec(table=table, landed=nothing, contract_key="", **own)
    return replace(told, compact=True, audited_hash=audited_hash)


def test_a_compactions_runs_share_no_right_to_write() -> None:
    """One writes the table and no report; the other only reads it, and writes its report."""
    rewriting = narrowed(compaction())
    comparing = narrowed(compaction(audited_hash="c" * 64))
    report = lake(compaction().report_key)
    data = lake(f"warehouse/shop/orders_{UUID}/data/a.parquet")
    other = lake(f"warehouse/shop/others_{UUID}/data/a.parquet")
    for run, table, its_report in ((rewriting, True, False), (comparing, False, True)):
        assert run.may("s3:GetObject", data)
        assert run.may("s3:PutObject", data) is table
        assert run.may("s3:PutObject", report) is its_report
        assert not run.may("s3:GetObject", other)
        assert not run.may("s3:PutObject", other)
        assert not run.may("s3:GetObject", landing("shop/orders/a.csv"))
        for key in ("reports/shop.orders/a/1.json", "staging/a", "upkeep/b.json"):
            assert not run.may("s3:PutObject", lake(key))


@given(st.integers(1, 300))
def test_every_policy_of_a_compaction_is_one_that_the_api_takes(length: int) -> None:
    """For any table the policy is JSON of at most 2,048 permitted characters."""
    assert narrowed(compaction(f"shop.{'t' * length}", audited_hash="c" * 64))


@given(st.text("0123456789abcdef", min_size=32, max_size=32))
def test_no_other_run_writes_the_report_of_a_compaction(ingestion: str) -> None:
    """Neither a shared run nor a run of any ingestion's own may write it."""
    report = lake(compaction("finance.payroll").report_key)
    shared = limited(shared_run_policy(SHARED, SETTINGS_))
    own = spec(ingestion=ingestion, report_key=f"reports/shop.orders/{ingestion}/1.json")
    for run in (shared, narrowed(own), narrowed(compaction(audited_hash="c" * 64))):
        assert not run.may("s3:PutObject", report)
    longest = max(re.findall("[0-9a-f]+", report), key=len)
    assert len(longest) < len(ingestion)  # so no id of an ingestion is in it


def test_runs_use_keys_only_where_a_stage_has_some() -> None:
    """With keys a run's policy lets the role use those that the role names; else it has none."""
    plain, keyed = SETTINGS_, replace(SETTINGS_, uses_keys="true")
    runs = (run_policy(spec(), plain), shared_run_policy(SHARED, plain))
    assert "kms:" not in str(runs)
    for policy in (run_policy(spec("k" * 1024), keyed), shared_run_policy(SHARED, keyed)):
        assert '"kms:Decrypt","kms:GenerateDataKey"' in policy
        assert limited(policy)


def test_shared_runs_read_every_landing_bucket() -> None:
    """A shared run reads the buckets of others as well, five of the longest names included."""
    names = [f"{number}{'b' * 62}" for number in range(5)]
    arns = ",".join(f"arn:aws:s3:::{name}" for name in names)
    settings = replace(SETTINGS_, landing_bucket_arns=arns, uses_keys="true")
    policy = shared_run_policy(SHARED, settings)
    assert limited(policy)
    for name in (*names, LANDING):
        assert f"arn:aws:s3:::{name}/*" in policy


def test_a_change_reads_its_own_text() -> None:
    """A change's landed object is its text in the lake bucket."""
    text = LandedObject(LAKE, "changes/shop.orders/abc.json", "v", "e", 10)
    run = narrowed(spec(landed=text, change=True, reads_others=True))
    assert run.may("s3:GetObject", lake("changes/shop.orders/abc.json"))
    assert not run.may("s3:GetObject", lake("changes/shop.orders/def.json"))


def batch(tables: Sequence[str], folder: str = "monday") -> JobSpec:
    """Return the job spec of a batch with one file for each table."""
    manifest = LandedObject(LANDING, f"batches/{folder}/_manifest.json", "v1", "e1", 10)
    parts = tuple(
        BatchFile(f"{n}.csv", "v", "e", 1, t, f"contracts/{t}.yaml", "1")
        for n, t in enumerate(tables)
    )
    return spec(landed=manifest, table="batch", contract_key="", parts=parts)


def test_a_batchs_run_has_its_folder_and_its_tables() -> None:
    """A batch's run reads the manifest's folder and writes its own tables only."""
    run = narrowed(batch(["shop.orders", "shop.returns"]))
    for key in ("batches/monday/0.csv", "batches/monday/0.csv.control.json"):
        assert run.may("s3:GetObjectVersion", landing(key))
    for key in ("batches/tuesday/0.csv", "batches/monday2/0.csv", "shop/orders/0.csv"):
        assert not run.may("s3:GetObject", landing(key))
    for name, may in (("orders", True), ("returns", True), ("customers", False)):
        assert run.may("s3:PutObject", lake(f"warehouse/shop/{name}_{UUID}/data/x.parquet")) is may
    for key in ("contracts/shop.returns.yaml", "baselines/shop.returns.json"):
        assert run.may("s3:GetObject", lake(key))
        assert not run.may("s3:PutObject", lake(key))


def test_many_tables_are_named_by_their_namespaces() -> None:
    """For twenty tables of two namespaces the policy names the two namespaces' folders."""
    run = narrowed(batch([f"{space}.table_{n}" for n in range(10) for space in ("shop", "nyc")]))
    assert run.may("s3:PutObject", lake(f"warehouse/nyc/table_7_{UUID}/data/x.parquet"))
    assert not run.may("s3:PutObject", lake(f"warehouse/other/table_7_{UUID}/data/x.parquet"))


@given(KEYS, st.integers(1, 20), st.integers(1, 100), st.booleans())
def test_every_policy_of_a_batch_is_one_that_the_api_takes(
    name: str, many: int, length: int, apart: bool
) -> None:
    """For any folder and tables the policy fits, and allows its own reads and writes."""
    tables = [f"{'s' * length}{n if apart else ''}.t{n}" for n in range(many)]
    run = narrowed(batch(tables, name))
    assert run.may("s3:GetObject", landing(f"batches/{name}/0.csv"))
    for table in tables:
        assert run.may("s3:PutObject", lake(f"warehouse/{table.replace('.', '/')}_{UUID}/data/x"))


def queue(name: str, account: str = ACCOUNT) -> str:
    return f"arn:aws:sqs:ap-southeast-1:{account}:lakegate-{'s' * 18}-{name}"


@pytest.mark.parametrize(
    "job_spec",
    [spec(), spec(reads_others=True), spec(reaudit_base="h"), spec(change=True)],
)
def test_a_run_of_its_own_reaches_no_queue(job_spec: JobSpec) -> None:
    """A run of its own file may neither take another's file nor name a report."""
    run = narrowed(job_spec)
    for name in ("work", "job-runs", "uploads"):
        for action in (*TAKING, "sqs:SendMessage"):
            assert not run.may(action, queue(name)), (name, action)


@pytest.fixture
def shared() -> Identity:
    """Return what a shared run may do."""
    return limited(shared_run_policy(SHARED, SETTINGS_))


def test_a_shared_run_takes_files_and_names_reports(shared: Identity) -> None:
    """A shared run only takes from its work queue, only sends to its verdict queue."""
    for action in TAKING:
        assert shared.may(action, queue("work")), action
        for other in (queue("job-runs"), queue("uploads"), queue("work", "1" * 12)):
            assert not shared.may(action, other), (action, other)
    assert shared.may("sqs:SendMessage", queue("job-runs"))
    for other in (queue("work"), queue("alerts.fifo"), queue("job-runs", "1" * 12)):
        assert not shared.may("sqs:SendMessage", other), other


def test_a_shared_run_does_for_every_table_what_a_run_does_for_its_own(shared: Identity) -> None:
    """A shared run reads what landed, contracts and baselines; it writes tables and reports."""
    for table in ("orders", "customers"):
        read = (f"contracts/shop.{table}.yaml", f"baselines/shop.{table}.json")
        for key in (*read, *(f"jobs/0123456789abcdef/{name}" for name in JOB_FILES)):
            assert shared.may("s3:GetObject", lake(key)), key
            assert not shared.may("s3:PutObject", lake(key)), key
        report = f"reports/shop.{table}/a/1.json"
        data = f"warehouse/shop/{table}_{UUID}/data/x.parquet"
        for key in (data, report, f"{report}.trying", "staging/shop.orders/a/1/file.csv"):
            assert shared.may("s3:PutObject", lake(key)), key
            assert shared.may("s3:GetObject", lake(key)), key
            assert not shared.may("s3:DeleteObject", lake(key)), key
        assert shared.may("s3:GetObjectVersion", landing(f"shop/{table}/a.csv"))
        assert not shared.may("s3:PutObject", landing(f"shop/{table}/a.csv"))
    for key in ("changes/shop.orders/abc.json", "jobs/fedcba/main.py", "anything"):
        assert not shared.may("s3:GetObject", lake(key)), key


def kept_apart(*tables: str) -> tuple[SharedRun, Identity]:
    """Return a shared run that is apart from tables, as it is started, and its rights."""
    run = widened(replace(SHARED, apart=tables), SETTINGS_)
    return run, limited(shared_run_policy(run, SETTINGS_))


def objects(table: str) -> Sequence[str]:
    """Return keys of a table's data, of reports about it, and of copies of its landed files."""
    path = table.replace(".", "/")
    data = (f"warehouse/{path}_{UUID}/data/x.parquet", f"warehouse/{path}/metadata/x.json")
    return (*data, f"reports/{table}/a/1.json", f"staging/{table}/a/1/file.csv")


@pytest.mark.parametrize("apart", [["shop.orders"], ["shop.orders", "hr.a"]])
def test_a_shared_run_reaches_no_table_that_is_apart(apart: Sequence[str]) -> None:
    """It neither reads nor writes such a table, its reports and copies of its files."""
    run, shared = kept_apart(*apart)
    assert not run.may_touch("shop.orders")
    others = ("shop.orders_2", "shop.order", "x.orders", "shops.orders", "ops.audit_results")
    for action in ("s3:GetObject", "s3:PutObject"):
        for key in objects("shop.orders"):
            assert not shared.may(action, lake(key)), key
        for table in others:
            assert run.may_touch(table)
            for key in objects(table):
                assert shared.may(action, lake(key)), key
    assert shared.may("s3:GetObjectVersion", landing("warehouse/shop/orders/a.csv"))


@given(
    st.lists(st.from_regex(r"[a-e]{1,9}\.[a-z0-9_]{1,30}", fullmatch=True), unique=True),
    st.from_regex(r"[a-e]{1,2}\.[a-z0-9_]{1,3}", fullmatch=True),
)
def test_rights_and_what_a_shared_run_takes_agree(apart: list[str], table: str) -> None:
    """However many tables are apart, a shared run has none of them, and rights to all it takes."""
    run, shared = kept_apart(*apart)
    for each in (*apart, table):
        rights = {shared.may("s3:PutObject", lake(key)) for key in objects(each)}
        assert rights == {run.may_touch(each)}
    assert not any(map(run.may_touch, apart))


def test_too_many_tables_keep_their_namespaces_apart() -> None:
    """Where a policy cannot name all tables, it names their namespaces, and at last all tables."""
    few, _ = kept_apart("hr.a", "hr.b")
    more, _ = kept_apart(*(f"hr.t{n}" for n in range(20)))
    all_, _ = kept_apart(*(f"hr{n}.t" for n in range(20)))
    assert (few.apart, more.apart, all_.apart) == (("hr.a", "hr.b"), ("hr.*",), ("*",))
    assert more.may_touch("shop.orders")
    assert not all_.may_touch("shop.orders")


def test_the_partition_is_the_roles() -> None:
    """In another AWS partition the buckets' ARNs begin with that partition."""
    settings = replace(SETTINGS_, emr_role_arn="arn:aws-us-gov:iam::000000000000:role/job")
    policy = run_policy(spec(), settings)
    assert "arn:aws-us-gov:s3:::" in policy
    shared = shared_run_policy(SHARED, settings)
    assert "arn:aws-us-gov:sqs:" in shared
    assert "arn:aws:" not in policy + shared


@given(st.text(alphabet="ab*?${}", max_size=8), st.text(alphabet="ab*?${}", max_size=8))
def test_a_pattern_of_escapes_is_read_back(text: str, other: str) -> None:
    """An escaped text matches only itself in the tests' IAM patterns."""
    escaped = re.sub(r"[*?$]", lambda found: f"${{{found[0]}}}", text)
    assert matches(escaped, text)
    assert matches(escaped, other) == (text == other)
