"""AWS Glue's catalog follows main and never goes back."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import DecimalType, LongType, NestedField, StringType

from functions.adapters.iceberg.file_io import CLIENT
from functions.downstream.glue import POSITION, Glue
from functions.model.messages.refresh import Refresh
from lakegate.errors import Permanent, Transient
from tests.contract.aws import ACCOUNT

TABLE = "shop.orders"
LOCATION = "s3://lake/warehouse/shop/orders_1"
ID = NestedField(1, "id", LongType(), required=True)
AMOUNT = NestedField(2, "amount", DecimalType(9, 2), doc="in euros")
STATUS = NestedField(3, "status", StringType())


@dataclass(frozen=True)
class Catalog:
    """The adapter with its clients."""

    glue: Glue
    client: Any
    s3: Any

    def refresh(self, position: int, *columns: NestedField) -> Refresh:
        """Refresh the table to a position with the metadata file there."""
        address = f"{LOCATION}/metadata/{position}.metadata.json"
        metadata = new_table_metadata(
            Schema(*columns or (ID,)), UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, LOCATION
        )
        body = io.BytesIO(metadata.model_dump_json().encode())
        self.s3.put_object(Bucket="lake", Key=address.removeprefix("s3://lake/"), Body=body)
        return Refresh(TABLE, position, address)

    def table(self, database: str = "pub_shop", name: str = "orders") -> dict[str, Any]:
        """Return Glue's definition of a table."""
        return dict(self.client.get_table(DatabaseName=database, Name=name)["Table"])

    @property
    def stands_at(self) -> str:
        """Return the metadata file that Glue's tables point to."""
        return str(self.table()["Parameters"]["metadata_location"])


def connected() -> Catalog:
    """Return an empty Glue, and a lake."""
    client, s3 = boto3.client("glue", **ACCOUNT), boto3.client("s3", **ACCOUNT)
    s3.create_bucket(Bucket="lake")
    return Catalog(Glue(client, s3, "pub_"), client, s3)


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    """Yield an empty Glue, and a lake."""
    with mock_aws():
        yield connected()


def test_the_first_publish_makes_database_and_table(catalog: Catalog) -> None:
    """A missing table and database are created so that any Iceberg client finds them."""
    assert catalog.glue.refresh(catalog.refresh(3, ID, AMOUNT))
    table = catalog.table()
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Parameters"]["table_type"] == "ICEBERG"
    assert table["StorageDescriptor"]["Location"] == LOCATION
    assert catalog.stands_at == f"{LOCATION}/metadata/3.metadata.json"
    io_ = {"py-io-impl": "functions.adapters.iceberg.file_io.S3FileIO", CLIENT: catalog.s3}
    read = GlueCatalog("g", client=catalog.client, **io_).load_table("pub_shop.orders")
    assert read.schema().column_names == ["id", "amount"]


def test_a_newer_publish_moves_it(catalog: Catalog) -> None:
    """A refresh updates the pointer, the previous pointer and the columns for Athena."""
    catalog.glue.refresh(catalog.refresh(3))
    before = catalog.table()["VersionId"]
    assert catalog.glue.refresh(catalog.refresh(5, ID, AMOUNT, STATUS))
    table = catalog.table()
    assert catalog.stands_at == f"{LOCATION}/metadata/5.metadata.json"
    known = f"{LOCATION}/metadata/3.metadata.json"
    assert table["Parameters"]["previous_metadata_location"] == known
    columns = [(each["Name"], each["Type"]) for each in table["StorageDescriptor"]["Columns"]]
    assert columns == [("id", "bigint"), ("amount", "decimal(9,2)"), ("status", "string")]
    assert table["StorageDescriptor"]["Columns"][1]["Comment"] == "in euros"
    assert table["VersionId"] != before


def test_a_long_description_keeps_no_table_from_glue(catalog: Catalog) -> None:
    """Glue takes comments of one line and at most 255 bytes: a longer description is cut."""
    about = "The customer's name,\n  as it was typed.\n" + "ü" * 255
    catalog.glue.refresh(catalog.refresh(3, NestedField(1, "name", StringType(), doc=about)))
    (column,) = catalog.table()["StorageDescriptor"]["Columns"]
    assert column["Comment"].startswith("The customer's name, as it was typed. üü")
    assert 250 < len(column["Comment"].encode()) <= 255


def test_no_table_is_brought_where_another_one_is(catalog: Catalog) -> None:
    """Glue's names are lower case: of two tables that differ in case the second is refused."""
    catalog.glue.refresh(replace(catalog.refresh(3), table="shop.Orders"))
    before = catalog.table()
    with pytest.raises(Permanent, match=r"NAME_TAKEN: shop\.orders and shop\.Orders .*pub_shop"):
        catalog.glue.refresh(catalog.refresh(5))
    assert catalog.table() == before


@pytest.mark.parametrize("position", [2, 3])
def test_an_older_or_equal_position_changes_nothing(catalog: Catalog, position: int) -> None:
    """A late or repeated refresh changes nothing; its file may be missing."""
    catalog.glue.refresh(catalog.refresh(3))
    before = catalog.table()
    assert not catalog.glue.refresh(Refresh(TABLE, position, f"{LOCATION}/metadata/gone.json"))
    assert catalog.table() == before


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=12))
def test_in_whatever_order_they_come_it_only_goes_forward(positions: Sequence[int]) -> None:
    """After refreshes in any order the newest so far is always shown."""
    with mock_aws():
        catalog = connected()
        for number, position in enumerate(positions, 1):
            catalog.glue.refresh(catalog.refresh(position))
            newest = max(positions[:number])
            assert catalog.stands_at == f"{LOCATION}/metadata/{newest}.metadata.json"


def test_additions_by_people_stay(catalog: Catalog) -> None:
    """A description, an owner and parameters that owners set survive a refresh."""
    catalog.glue.refresh(catalog.refresh(3))
    table = catalog.table()
    mine = {
        "Name": "orders",
        "Description": "Orders",
        "Owner": "ann",
        "TableType": "EXTERNAL_TABLE",
    }
    parameters = {**table["Parameters"], "team": "shop"}
    given = {**mine, "Parameters": parameters, "StorageDescriptor": table["StorageDescriptor"]}
    catalog.client.update_table(DatabaseName="pub_shop", TableInput=given)
    catalog.glue.refresh(catalog.refresh(4))
    table = catalog.table()
    assert (table["Description"], table["Owner"]) == ("Orders", "ann")
    assert table["Parameters"]["team"] == "shop"


def test_a_table_of_somebody_else_is_not_touched(catalog: Catalog) -> None:
    """A table that Lakegate did not create stays unchanged and is reported."""
    catalog.client.create_database(DatabaseInput={"Name": "pub_shop"})
    given = {"Name": "orders", "Parameters": {"classification": "csv"}}
    catalog.client.create_table(DatabaseName="pub_shop", TableInput=given)
    with pytest.raises(Permanent, match=r"FOREIGN_TABLE.*pub_shop\.orders"):
        catalog.glue.refresh(catalog.refresh(3))
    assert catalog.table()["Parameters"] == {"classification": "csv"}


def test_a_quicker_update_is_not_overwritten(catalog: Catalog) -> None:
    """Glue compares the version that was read: a race ends in a retry, never in the past."""
    catalog.glue.refresh(catalog.refresh(3))
    newer = catalog.refresh(5)

    class Raced:
        """Glue's client; another process moves the table before each update."""

        def __getattr__(self, name: str) -> Any:
            return getattr(catalog.client, name)

        def update_table(self, **given: Any) -> None:
            """See boto3."""
            client = boto3.client("glue", **ACCOUNT)
            with Stubber(client) as stubber:
                stubber.add_client_error("update_table", "ConcurrentModificationException")
                assert given["VersionId"] == catalog.table()["VersionId"]
                client.update_table(**given)

    with pytest.raises(Transient, match="GLUE_UNAVAILABLE"):
        Glue(Raced(), catalog.s3, "pub_").refresh(newer)
    assert catalog.table()["Parameters"][POSITION] == "3"


def test_metadata_that_is_gone_is_reported(catalog: Catalog) -> None:
    """If main's file was deleted since, the pointer stays and the error is permanent."""
    catalog.glue.refresh(catalog.refresh(3))
    with pytest.raises(Permanent, match="METADATA_GONE"):
        catalog.glue.refresh(Refresh(TABLE, 4, f"{LOCATION}/metadata/gone.json"))


@pytest.mark.parametrize("body", ["", "{}", "nonsense", '{"format-version": 9}'])
def test_invalid_metadata_is_reported(catalog: Catalog, body: str) -> None:
    """A file that is not table metadata moves nothing."""
    catalog.s3.put_object(Bucket="lake", Key="x.json", Body=body.encode())
    with pytest.raises(Permanent, match="BAD_METADATA"):
        catalog.glue.refresh(Refresh(TABLE, 4, "s3://lake/x.json"))
