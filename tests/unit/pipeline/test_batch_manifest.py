"""A manifest names files and tables; an invalid one is refused with a reason."""

import json
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.adapters.ledger.items import from_item, to_item
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import Ingestion
from lakegate.errors import Permanent
from lakegate.job.batch import BatchFile, Listed, folder, read_manifest
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import (
    LandedObject,
    batch_name,
    branch_name,
    ignore_rule,
    parse_branch_name,
)
from lakegate.limits import Limits

GUIDE = (Path(__file__).parents[3] / "docs" / "batches.md").read_text()
MANIFEST = LandedObject("landing", "batches/monday/_manifest.json", "v1", "e1", 90, landed_at="t")
PART = BatchFile(
    "in/a.csv", "v7", "e7", 12, "shop.orders", "contracts/shop.orders.yaml", "v2", 3, "abc"
)


def manifest(*entries: object) -> str:
    """Return a manifest with these entries."""
    return json.dumps({"files": entries})


def entry(key: str = "a.csv", table: str = "shop.orders") -> dict[str, str]:
    """Return a valid entry."""
    return {"key": key, "table": table}


def test_each_file_has_its_contract() -> None:
    """The contracts of a batch are those of its files, in their order; a file has one."""
    other = replace(PART, contract_key="contracts/shop.lines.yaml", contract_version="v9")
    batch = Ingestion("a", MANIFEST, parts=(PART, other))
    assert batch.contracts == (
        ("contracts/shop.orders.yaml", "v2"),
        ("contracts/shop.lines.yaml", "v9"),
    )
    single = Ingestion("a", MANIFEST, terms=ContractTerms(contract_key="k", contract_version="v1"))
    assert single.contracts == (("k", "v1"),)


def test_the_guides_manifest_is_taken() -> None:
    """The guide's manifest is valid."""
    (block,) = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    assert read_manifest(block) == (
        Listed("orders.parquet", "shop.orders"),
        Listed("lines.parquet", "shop.order_lines"),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no list of files"),
        ("null", "has no list of files"),
        ('{"files": {}}', "has no list of files"),
        ('{"files": [], "File": []}', "more than files in it: File"),
        (manifest(), "names no file"),
        (manifest("a.csv"), "file 1 of it: each has a key and a table"),
        (manifest(entry(), {"key": "b.csv"}), "file 2 of it: each has a key and a table"),
        (manifest({**entry(), "rows": 3}), "and nothing more"),
        (manifest({"key": "a.csv", "table": None}), "are texts, not empty"),
        (manifest(entry(key="")), "are texts, not empty"),
        (manifest(entry(), entry(table="shop.returns")), "names a.csv more than once"),
        (manifest(entry(key="/a.csv")), "not a key in its folder"),
        (manifest(entry(key="s3://landing/a.csv")), "not a key in its folder"),
        (manifest(entry(key="../tuesday/a.csv")), "leads out of its folder"),
        (manifest(entry(key="in/./a.csv")), "leads out of its folder"),
        (manifest(entry(key="in/")), "to none of its files"),
        (manifest(entry(key="_manifest.json")), "a manifest and no data"),
        (manifest(*(entry(key=f"{n}.csv") for n in range(21))), "names 21 files: at most 20"),
    ],
)
def test_an_invalid_manifest_is_refused_with_a_reason(text: str | bytes, words: str) -> None:
    """The message names the problem, and asks for a new manifest."""
    with pytest.raises(Permanent, match=re.escape(words)) as refused:
        read_manifest(text)
    assert refused.value.code == "BAD_MANIFEST"
    assert refused.value.message.endswith("upload it once more")


def test_the_limit_of_files_can_be_set() -> None:
    """More than 20 files need a raised limit."""
    text = manifest(*(entry(key=f"{n}.csv") for n in range(21)))
    assert len(read_manifest(text, Limits(most_batch_files=21))) == 21


@given(
    st.one_of(
        st.text(),
        st.binary(),
        st.builds(
            json.dumps,
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(),
                lambda inner: (
                    st.lists(inner)
                    | st.dictionaries(st.sampled_from(["files", "key", "table"]), inner)
                ),
            ),
        ),
    )
)
def test_any_text_is_a_manifest_or_refused(text: str | bytes) -> None:
    """Any text gives files with keys in the folder, or a message, and no other error."""
    with suppress(Permanent):
        found = read_manifest(text)
        assert all(".." not in each.key.split("/") and each.table for each in found)


@pytest.mark.parametrize(
    ("key", "name", "code"),
    [
        ("batches/monday/_manifest.json", "monday", ""),
        ("batches/monday/a.csv", "", "BATCH_MEMBER"),
        ("batches/monday/in/_manifest.json", "", "IGNORED_KEY"),
        ("batches/monday/in/a.csv", "", "BATCH_MEMBER"),
        ("batches/monday/_SUCCESS", "", "IGNORED_KEY"),
        ("batches/_manifest.json", "", "IGNORED_KEY"),
        ("batches/a.csv", "", ""),
        ("shop/orders/_manifest.json", "", "IGNORED_KEY"),
        ("shop/batches/monday/a.csv", "", ""),
        ("batches/monday/_manifest.json.bak", "", "IGNORED_KEY"),
        ("batches/monday/_manifest.json\n", "", "IGNORED_KEY"),
    ],
)
def test_only_a_folders_own_manifest_begins_a_batch(key: str, name: str, code: str) -> None:
    """Only `batches/<name>/_manifest.json` begins a batch; all else in the folder waits for it."""
    rule = ignore_rule(key)
    assert batch_name(key) == name
    assert (rule.code if rule else "") == code


def test_a_batchs_branch_is_named_after_its_folder() -> None:
    """The branch has the batch's name, and no table's branch can have that name."""
    branch = branch_name("batch", MANIFEST.key, "0a" * 16, 2)
    assert branch == "ingest/batch/monday-0a0a0a0a0a0a-2"
    assert parse_branch_name(branch) == ("batch", "0a" * 6, 2)


def test_a_part_is_a_landed_object_of_its_own() -> None:
    """A file's key is below the manifest's folder, in the manifest's bucket."""
    landed = PART.landed(MANIFEST)
    assert landed.uri == "s3://landing/batches/monday/in/a.csv"
    assert (landed.version, landed.etag, landed.size) == ("v7", "e7", 12)
    assert folder(MANIFEST.key) == "batches/monday/"


def test_the_ledger_and_the_job_get_all_of_a_file() -> None:
    """The ledger and the job's specification keep all fields of a file."""
    batch = Ingestion(
        id="0a" * 16, landed=MANIFEST, terms=ContractTerms(table="batch"), parts=(PART,)
    )
    assert from_item(to_item(batch)) == batch
    spec = JobSpec(
        "i", 1, MANIFEST, "batch", "b", "h", "lake", "", "", "r", "n", "s", parts=(PART,)
    )
    assert JobSpec.from_argument(spec.to_argument()) == spec
    own = spec.part_spec(PART, "h2")
    assert (own.table, own.base_hash, own.contract_version) == ("shop.orders", "h2", "v2")
    assert own.landed == PART.landed(MANIFEST)
