"""The detection of stalled tasks, as opposed to waiting and working ones."""

from dataclasses import replace

from spark_jobs.spark.stall import Progress, Stall

BUSY = Progress(1, ((0, 0, 0, 4096),))


def test_tasks_that_do_nothing_stall() -> None:
    """Tasks without progress are stalled after the allowed time, and not before."""
    stall = Stall(60)
    assert not stall.is_stalled(BUSY, 1_000)
    assert not stall.is_stalled(BUSY, 1_059)
    assert stall.is_stalled(BUSY, 1_060)


def test_any_progress_starts_the_time_again() -> None:
    """One more row, or another task, starts the time again."""
    stall = Stall(60)
    stall.is_stalled(BUSY, 0)
    assert not stall.is_stalled(replace(BUSY, done=((0, 0, 0, 8192),)), 59)
    assert not stall.is_stalled(replace(BUSY, done=((0, 0, 0, 8192),)), 100)
    assert stall.is_stalled(replace(BUSY, done=((0, 0, 0, 8192),)), 119)


def test_nothing_stalls_without_a_task() -> None:
    """Waiting for executors, or for the driver, is not a stall."""
    stall = Stall(60)
    idle = Progress(0, ())
    assert not stall.is_stalled(idle, 0)
    assert not stall.is_stalled(idle, 600)
    assert not stall.is_stalled(BUSY, 601)
