"""Existing files of another bucket come through the gate on the real stack."""

import boto3
import pytest

from access.deployment.checkout import ROOT
from tests.e2e.conftest import Gate, contract, run
from tests.e2e.test_bad_input import parquet

pytestmark = pytest.mark.stack
_PAGE = ROOT / "docs" / "contracts.md"


def test_a_bucket_of_old_files_is_brought_once(gate: Gate) -> None:
    """The page's commands list the files, bring each of them once, and name those that failed."""
    commands = [line for line in _PAGE.read_text().splitlines() if "lakegate backfill" in line]
    dry, real = (line.replace("shop.", "old.").split()[1:] for line in commands)
    gate.put_contract(contract("old.orders", "parquet", "shared"))
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="old-bucket")
    for n, amount in enumerate((1.5, 2.5, -1.0)):
        body = parquet(id=[n], amount=[amount])
        s3.put_object(Bucket="old-bucket", Key=f"orders/2024/ü {n}.parquet", Body=body)

    assert "3 files" in run(*dry)
    told = run(*real, code=3)
    assert "3 copied, 2 published, 1 rejected, 0 under way" in told
    assert "ü 2.parquet: rejected" in told
    assert "1 copied before, 2 published before, 2 published, 1 rejected" in run(*real, code=3)
    assert "BAD_TARGET" in run(*real, "--to", "elsewhere/", code=1)
    assert gate.rows("old.orders") == [(0, 1.5), (1, 2.5)]
