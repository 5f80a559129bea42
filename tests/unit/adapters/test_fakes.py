"""The fakes have the adapters' methods with the same signatures."""

import inspect

import pytest

from functions.adapters.emr import Jobs
from functions.adapters.iceberg.tables import Tables
from functions.adapters.landing import Landing
from functions.adapters.ledger.ledger import Ledger
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake
from functions.adapters.sqs import AlertQueue, AnnouncementQueue, DeadLetters
from tests.fakes.alerts import FakeAlerts
from tests.fakes.announcements import FakeAnnouncements
from tests.fakes.catalog import FakeCatalog, FakeTables
from tests.fakes.jobs import FakeJobs
from tests.fakes.ledger import FakeLedger
from tests.fakes.queues import FakeDeadLetters
from tests.fakes.storage import FakeLake, FakeLanding


@pytest.mark.parametrize(
    ("real", "fake"),
    [
        (Catalog, FakeCatalog),
        (Tables, FakeTables),
        (Jobs, FakeJobs),
        (Ledger, FakeLedger),
        (Landing, FakeLanding),
        (Lake, FakeLake),
        (DeadLetters, FakeDeadLetters),
        (AlertQueue, FakeAlerts),
        (AnnouncementQueue, FakeAnnouncements),
    ],
)
def test_a_fake_is_called_like_the_real_one(real: type, fake: type) -> None:
    """Each public method of an adapter exists in its fake with the same signature."""
    for name, method in inspect.getmembers(real, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(getattr(fake, name)) == inspect.signature(method), name
