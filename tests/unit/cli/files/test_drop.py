"""Output of `lakegate drop`."""

from dataclasses import replace

import pytest

from access.ingestions.follow import dropped
from cli.files.drop import list_uploads
from cli.ingestions.show import source
from tests.unit.cli.cli_examples import LANDED

_NAMED = replace(LANDED.landed, key="shop/orders/new\nline.csv")


def test_each_uploaded_file_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A name with a line end in it cannot begin a line of its own, here or in `show`."""
    item = dropped(_NAMED)
    list_uploads([item])
    address = f"s3://{_NAMED.bucket}/shop/orders/new␊line.csv"
    assert capsys.readouterr().out.splitlines() == [f"{item.ingestion.id}  {address}"]
    assert source(item.ingestion)[0] == ("file", address)
