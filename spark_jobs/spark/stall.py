"""Tasks that never end: damage in a file can make a reader spin, and no exception tells of it."""

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
    """What the running tasks have done so far: how many they are, and each stage's counts."""

    tasks: int
    done: tuple[tuple[int, ...], ...]


class Stall:
    """How long the running tasks have done nothing."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._last: Progress | None = None
        self._since = 0.0

    def lasts(self, progress: Progress, now: float) -> bool:
        """Return if tasks run, and have not got on for as long as they may."""
        if not progress.tasks or progress != self._last:
            self._last, self._since = progress, now
        return now - self._since >= self._longest


@contextmanager
def watched(spark: SparkSession, longest: float, pause: float = _PAUSE) -> Iterator[None]:
    """Cancel what Spark does once its tasks have not got on for `longest` seconds.

    Raises Permanent TIMED_OUT then. A thread that spins heeds nobody: it ends with its process, so
    that Spark has to have its executors killed (`spark.task.reaper`), or be ended itself.
    """
    ended, stalled = Event(), Event()
    thread = Thread(target=_watch, args=(spark, Stall(longest), pause, ended, stalled), daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        if not stalled.is_set():
            raise
        message = f"Spark's tasks did not get on for {longest:g} seconds and were ended: the file"
        message = (
            f"{message} is damaged so that reading it never ends, or LongestStall is too short"
        )
        raise Permanent("TIMED_OUT", message) from error
    finally:
        ended.set()
        thread.join()


def _watch(spark: SparkSession, stall: Stall, pause: float, ended: Event, stalled: Event) -> None:
    while not ended.wait(pause):
        if stall.lasts(_progress(spark), time.monotonic()):
            stalled.set()
            spark.sparkContext.cancelAllJobs()


def _progress(spark: SparkSession) -> Progress:
    stages = list(jvm.each(jvm.java_session(spark).sparkContext().statusStore().activeStages()))
    done = tuple(tuple(int(getattr(stage, count)()) for count in _COUNTS) for stage in stages)
    return Progress(sum(stage.numActiveTasks() for stage in stages), done)
