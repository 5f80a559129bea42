import os
from concurrent.futures import ThreadPoolExecutor
from signal import SIGINT, getsignal

import pytest

from infra.local.contract_test import interrupted_later


def test_a_ctrl_c_waits_until_java_has_started() -> None:
    """What must end before an interruption ends, and Ctrl-C works as before after it."""
    before, done = getsignal(SIGINT), []

    @interrupted_later()
    def started() -> None:
        os.kill(os.getpid(), SIGINT)
        done.append("started")

    with pytest.raises(KeyboardInterrupt):
        started()
    assert (done, getsignal(SIGINT)) == (["started"], before)


def test_a_thread_that_nothing_interrupts_starts_java_too() -> None:
    """In another thread than the main one no handler can be set, and none is needed."""

    def started() -> bool:
        with interrupted_later():
            return True

    with ThreadPoolExecutor() as pool:
        assert pool.submit(started).result()
