"""All guards of the promises, by name."""

from tests.fakes.guards.auditing import AUDITING
from tests.fakes.guards.finishing import FINISHING
from tests.fakes.guards.publishing import PUBLISHING

GUARDS = {guard.name: guard for guard in (*AUDITING, *PUBLISHING, *FINISHING)}
