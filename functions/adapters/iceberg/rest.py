"""Nessie's Iceberg REST catalog, verified by the authority of its certificate."""

from pyiceberg.catalog.rest import RestCatalog
from requests import Session

from lakegate import trust


class NessieCatalog(RestCatalog):
    """A REST catalog that trusts what all of Nessie's clients trust."""

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.verify = trust.bundle()
        # The environment's REQUESTS_CA_BUNDLE would take the place of a session's file.
        session.trust_env = session.verify is True
        return session
