"""Cancel Spark tasks that make no progress.

A damaged file can make a reader loop forever, and a value the search for a pattern.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from pyspark.sql import SparkSession

from lakegate.errors import Permanent
from spark_jobs.spark import jvm

_PAUSE = 10.0  # the executors tell of their tasks as often
_COUNTS = (
    *("stageId", "attemptId", "numCompleteTasks", "inputRecords", "inputBytes"),
    *("outputRecords", "outputBytes", "shuffleReadRecords", "shuffleReadBytes"),
    *("shuffleWriteRecords", "shuffleWriteBytes", "memoryBytesSpilled", "diskBytesSpilled"),
)


@dataclass(frozen=True)
class Progress:
    """The progress of the running tasks: how many there are, and each stage's counts."""

    tasks: int
    done: tuple[tuple[int, ...], ...]


class Stall:
    """The time for which the running tasks have made no progress."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._last: Progress | None = None
        self._since = 0.0

    def is_stalled(self, progress: Progress, now: float) -> bool:
        """Return if tasks run, and made no progress for the allowed time."""
        if not progress.tasks or progress != self._last:
            self._last, self._since = progress, now
        return now - self._since >= self._longest


@contextmanager
def cancel_when_stalled(
    spark: SparkSession, longest: float, pause: float = _PAUSE
) -> Iterator[None]:
    """Cancel Spark's jobs once its tasks made no progress for `longest` seconds.

    Raises Permanent TIMED_OUT then. A looping thread ignores the cancellation and ends only with
    its process: Spark must kill its executors (`spark.task.reaper`), or be ended itself.
    """
    ended, stalled = Event(), Event()
    thread = Thread(target=_watch, args=(spark, Stall(longest), pause, ended, stalled), daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        if not stalled.is_set():
            raise
        message = (
            f"Spark's tasks made no progress for {longest:g} seconds and were ended: a file is "
            "damaged so that reading it never ends, a pattern of the contract takes too long on a "
            "value, or LongestStall is too short"
        )
        raise Permanent("TIMED_OUT", message) from error
    finally:
        ended.set()
        thread.join()


def _watch(spark: SparkSession, stall: Stall, pause: float, ended: Event, stalled: Event) -> None:
    while not ended.wait(pause):
        if stall.is_stalled(_current_progress(spark), time.monotonic()):
            stalled.set()
            spark.sparkContext.cancelAllJobs()


def _current_progress(spark: SparkSession) -> Progress:
    stages = list(jvm.items_of(jvm.java_session(spark).sparkContext().statusStore().activeStages()))
    done = tuple(tuple(int(getattr(stage, count)()) for count in _COUNTS) for stage in stages)
    return Progress(sum(stage.numActiveTasks() for stage in stages), done)
