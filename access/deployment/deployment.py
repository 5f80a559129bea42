"""A running deployment: its settings and addresses, and what can be opened with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from functions.settings import Settings

if TYPE_CHECKING:
    from access.tables.reader import Reader
    from functions.adapters.all import Adapters
    from functions.model.ingestion import Ingestion
    from functions.operations.decisions.failed import Outcome


@dataclass(frozen=True)
class Deployment:
    """A running deployment of Lakegate.

    `addresses` maps the systems that clients may use to their URLs. `reader_token` reads the
    catalog; it is "" if clients have tokens of their own. `local` means this machine.
    `expire_function` discards for people; it is "" where they do it by their own rights.
    """

    settings: Settings
    addresses: Mapping[str, str]
    reader_token: str = field(repr=False)
    local: bool
    expire_function: str = ""

    def adapters(self) -> "Adapters":
        """Return the adapters, which call Nessie at its address for clients."""
        from functions.wiring import connect

        return connect(self.settings, self.addresses["nessie"])

    def discard(self, ingestion: "Ingestion", by: str) -> "Outcome":
        """Discard a failed ingestion, by the stage's function if there is one.

        Raises LakegateError as `failed.discard` does, and if the function
        cannot be asked.
        """
        from access.deployment import discarding
        from functions.operations.decisions import failed

        adapters, function = self.adapters(), self.expire_function
        if not function:
            return failed.discard(adapters, ingestion, by=by)
        client = discarding.client_of(self.settings.clean_up_role_arn)
        return discarding.discard(client, function, adapters.ledger, ingestion, by)

    def catalog_token(self) -> str:
        """Return a token that reads the catalog: the reader's, or else the functions' own."""
        import boto3

        from functions.adapters.secrets import secret

        name = self.settings.nessie_token_secret
        return self.reader_token or secret(boto3.client("secretsmanager"), name)

    def reader(self, reference: str) -> "Reader":
        """Return a reader of the tables at a branch, or at `branch@hash`."""
        from access.tables.reader import Reader

        return Reader(self.addresses["iceberg"], self.catalog_token(), reference)
