"""A task that does nothing is told from one that waits, or works."""

from dataclasses import replace

from spark_jobs.spark.stall import Progress, Stall

BUSY = Progress(1, ((0, 0, 0, 4096),))


def test_tasks_that_do_nothing_stall() -> None:
    """Tasks that have not got on for as long as they may are stalled, and not a second before."""
    stall = Stall(60)
    assert not stall.lasts(BUSY, 1_000)
    assert not stall.lasts(BUSY, 1_059)
    assert stall.lasts(BUSY, 1_060)


def test_any_progress_starts_the_time_again() -> None:
    """One more row, or another task, and the tasks have all their time again."""
    stall = Stall(60)
    stall.lasts(BUSY, 0)
    assert not stall.lasts(replace(BUSY, done=((0, 0, 0, 8192),)), 59)
    assert not stall.lasts(replace(BUSY, done=((0, 0, 0, 8192),)), 100)
    assert stall.lasts(replace(BUSY, done=((0, 0, 0, 8192),)), 119)


def test_nothing_stalls_without_a_task() -> None:
    """Waiting for executors, or for the driver, is no stall."""
    stall = Stall(60)
    idle = Progress(0, ())
    assert not stall.lasts(idle, 0)
    assert not stall.lasts(idle, 600)
    assert not stall.lasts(BUSY, 601)
