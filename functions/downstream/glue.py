"""Point tables of AWS Glue to main's newest metadata, so that Athena reads them.

The metadata file is main's own; nothing is copied. Columns and location are those that
pyiceberg's Glue catalog sets when it registers a table. It refuses an existing table, so the
pointer is moved here as Iceberg's commits do: with the previous version, which Glue compares
(Iceberg documentation, "AWS", "Optimistic locking").
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.exceptions import ValidationError

from functions.adapters.iceberg.file_io import CLIENT, S3FileIO
from functions.model.messages.refresh import Refresh, taken
from lakegate.errors import Permanent, Transient
from lakegate.refusals import unavailable
from lakegate.text import one_line

POSITION, TABLE = "lakegate.position", "lakegate.table"
_METADATA, _PREVIOUS = "metadata_location", "previous_metadata_location"
_REFUSED = ("InvalidInputException", "ValidationException", "ResourceNumberLimitExceededException")
_LONGEST_COMMENT = 255  # bytes, on one line (AWS Glue, "Column structure")
_KEPT = ("Description", "Owner", "Retention")  # owners may have set these
_IO = f"{S3FileIO.__module__}.{S3FileIO.__qualname__}"


class Glue:
    """The tables of Glue's databases `<prefix><namespace>` in lower case; a Consumer."""

    def __init__(self, client: Any, s3: Any, prefix: str) -> None:
        """Use boto3's `glue` and `s3` clients."""
        self._client = client
        self._s3 = s3
        self._prefix = prefix

    def refresh(self, refresh: Refresh) -> bool:
        """Refresh a table as Consumer requires; create a missing table and its database.

        Raises Permanent FOREIGN_TABLE for a table that Lakegate did not create, NAME_TAKEN for one
        that follows another table of main, METADATA_GONE and BAD_METADATA for unusable metadata,
        GLUE_REFUSED; Transient GLUE_UNAVAILABLE.
        """
        namespace, _, name = refresh.table.lower().rpartition(".")
        database = f"{self._prefix}{namespace}"
        with _translated(refresh):
            there = self._table(database, name)
            if there and _position(there, refresh.table) >= refresh.position:
                return False
            wanted = self._wanted(database, name, refresh)
            if there:
                self._move(database, there, wanted)
            else:
                self._make(database, wanted)
        return True

    def _table(self, database: str, name: str) -> dict[str, Any] | None:
        try:
            answer = self._client.get_table(DatabaseName=database, Name=name)
        except self._client.exceptions.EntityNotFoundException:
            return None
        return dict(answer["Table"])

    def _wanted(self, database: str, name: str, refresh: Refresh) -> dict[str, Any]:
        """Return the table's definition for Glue."""
        catalog = _Registering()
        io = {"py-io-impl": _IO, CLIENT: self._s3}
        given: Any = catalog
        GlueCatalog("glue", client=given, **io).register_table((database, name), refresh.metadata)
        for column in catalog.input["StorageDescriptor"]["Columns"]:
            if about := column.get("Comment"):
                column["Comment"] = _fitting(about)
        own = {POSITION: str(refresh.position), TABLE: refresh.table}
        return {**catalog.input, "Parameters": {**catalog.input["Parameters"], **own}}

    def _make(self, database: str, wanted: dict[str, Any]) -> None:
        try:
            self._client.create_table(DatabaseName=database, TableInput=wanted)
        except self._client.exceptions.EntityNotFoundException:
            about = "Tables published by Lakegate"
            self._client.create_database(DatabaseInput={"Name": database, "Description": about})
            self._client.create_table(DatabaseName=database, TableInput=wanted)

    def _move(self, database: str, there: dict[str, Any], wanted: dict[str, Any]) -> None:
        before = {_PREVIOUS: there["Parameters"][_METADATA]}
        parameters = {**there["Parameters"], **before, **wanted["Parameters"]}
        kept = {name: there[name] for name in _KEPT if there.get(name)}
        self._client.update_table(
            DatabaseName=database,
            TableInput={**kept, **wanted, "Parameters": parameters},
            VersionId=there["VersionId"],
            SkipArchive=True,  # Glue's archive is limited; main's log has all versions
        )


class _Registering:
    """A stand-in for Glue's client that keeps the table which pyiceberg registers."""

    def __init__(self) -> None:
        self.input: dict[str, Any] = {}

    def create_table(self, *, DatabaseName: str, TableInput: Mapping[str, Any]) -> None:  # noqa: N803
        """Keep the definition that pyiceberg creates."""
        self.input = {**TableInput}

    def get_table(self, *, DatabaseName: str, Name: str) -> dict[str, Any]:  # noqa: N803
        """Return it, as pyiceberg reads it again."""
        return {"Table": {**self.input, "DatabaseName": DatabaseName, "Name": Name}}


def _fitting(comment: str) -> str:
    line = one_line(" ".join(comment.split()))
    return line.encode()[:_LONGEST_COMMENT].decode(errors="ignore")


def _position(there: Mapping[str, Any], table: str) -> int:
    """Return the table's last position. Raises Permanent if it follows another table."""
    parameters = there.get("Parameters", {})
    where = f"{there['DatabaseName']}.{there['Name']}"
    if parameters.get(TABLE, table) != table:
        raise taken(table, parameters[TABLE], f"delete Glue's table {where}")
    if POSITION not in parameters or _METADATA not in parameters:
        message = (
            f"Lakegate did not create Glue's table {where} and will not change it: delete it in "
            "Glue, or set another prefix"
        )
        raise Permanent("FOREIGN_TABLE", message)
    return int(parameters[POSITION])


@contextmanager
def _translated(refresh: Refresh) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        message = f"the metadata of {refresh.table} is gone: {refresh.metadata}"
        raise Permanent("METADATA_GONE", message) from error
    except (ValidationError, ValueError) as error:
        message = f"{refresh.metadata} is not valid table metadata: {error}"
        raise Permanent("BAD_METADATA", message) from error
    except ClientError as error:
        if error.response["Error"]["Code"] in _REFUSED:
            raise Permanent("GLUE_REFUSED", f"Glue refused {refresh.table}: {error}") from error
        message = f"Glue or S3 refused: {error}"
        raise unavailable(error, "GLUE_UNAVAILABLE", message) from error
    except BotoCoreError as error:
        raise Transient("GLUE_UNAVAILABLE", f"Glue or S3 did not answer: {error}") from error
