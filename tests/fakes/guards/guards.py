"""All guards of the promises, by name."""

from tests.fakes.guards.auditing import AUDITING
from tests.fakes.guards.finishing import FINISHING
from tests.fakes.guards.ordering import ORDERING
from tests.fakes.guards.publishing import PUBLISHING
from tests.fakes.guards.sharing import SHARING
from tests.fakes.guards.upkeep import UPKEEP

_ALL = (*AUDITING, *PUBLISHING, *ORDERING, *FINISHING, *SHARING, *UPKEEP)
GUARDS = {guard.name: guard for guard in _ALL}
