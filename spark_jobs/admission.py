"""A run's token for Nessie, at the door."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from lakegate.jobspec import JobSpec
from lakegate.tokens import TokenRefused, check_lasts
from spark_jobs.branch import Branch

_SECONDS = 600.0
_PAUSE = 5.0


def admitted(
    spec: JobSpec,
    read: Callable[[], str],
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """The token that `read` gives, once Nessie takes it.

    A new key reaches the servers one by one, minutes after the tokens that it signed. A run that
    begins meanwhile waits for it, ten minutes at most, rather than use up its ingestion's tries.
    Raises TokenRefused where that does not help, Transient TOKEN_ENDS where the token would end
    before the run may.
    """
    deadline = monotonic() + _SECONDS
    while True:
        token = read()
        check_lasts(token, datetime.now(UTC), spec.timeout_minutes)
        try:
            Branch(spec.nessie_uri, spec.branch, token).head()
        except TokenRefused:
            if monotonic() > deadline:
                raise
            sleep(_PAUSE)
        else:
            return token
