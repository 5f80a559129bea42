"""Tell people of a right that is missing: only they can give it, and all else goes on by itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from functions.adapters.all import Adapters
from functions.model.messages.alert import Alert
from functions.notifications.blocks import escaped, notice
from lakegate.refusals import RIGHT_MISSING, RightMissing


@contextmanager
def telling(adapters: Adapters) -> Iterator[None]:
    """Alert people of a right that is missing, and raise it again, so that the work is repeated."""
    try:
        yield
    except RightMissing as error:
        adapters.alerts.post("", right_missing(error.message, adapters.now()[:10]))
        raise


def right_missing(message: str, day: str) -> Alert:
    """Return the alert, which is shown once a day for each role and right, whatever they meet."""
    title = "A right is missing: files wait for it"
    right = message.partition(" on ")[0]
    return notice(title, escaped(message), f"{day} {right}", f"{RIGHT_MISSING} {right}")
