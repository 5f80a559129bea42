import os
from concurrent.futures import ThreadPoolExecutor
from signal import SIGINT, default_int_handler, getsignal, signal

import pytest

from infra.local.contract_test import interrupted_later


def test_a_ctrl_c_waits_until_java_has_started() -> None:
    """What must end before an interruption ends, and Ctrl-C works as before after it."""
    before, done = getsignal(SIGINT), []
    signal(SIGINT, default_int_handler)  # a test's process may ignore it

    @interrupted_later()
    def started() -> None:
        os.kill(os.getpid(), SIGINT)
        done.append("started")

    with pytest.raises(KeyboardInterrupt):
        started()
    now = signal(SIGINT, before)
    assert (done, now) == (["started"], default_int_handler)


def test_a_second_ctrl_c_ends_what_hangs() -> None:
    """A Java that does not come up can be given up by whoever waits for it."""
    before, done = signal(SIGINT, default_int_handler), []

    @interrupted_later()
    def hanging() -> None:
        for _ in range(2):
            os.kill(os.getpid(), SIGINT)
            done.append("more")

    with pytest.raises(KeyboardInterrupt):
        hanging()
    signal(SIGINT, before)
    assert done == ["more"]


def test_a_thread_that_nothing_interrupts_starts_java_too() -> None:
    """In another thread than the main one no handler can be set, and none is needed."""

    def started() -> bool:
        with interrupted_later():
            return True

    with ThreadPoolExecutor() as pool:
        assert pool.submit(started).result()
