"""Spark's counts of merged rows are taken only where no row can have counted twice."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakegate.errors import Permanent
from lakegate.job.change import Effect
from spark_jobs.write.replacing import checked, is_exact, merged_rows

_OUTCOMES = ("inserted", "updated", "deleted", "copied")
_TASKS = st.lists(st.lists(st.sampled_from(_OUTCOMES), max_size=5), max_size=6)


def summary(done: Counter[str], counted: Counter[str]) -> dict[str, str]:
    """Return the summary of a snapshot, of which Spark has counted other rows than were written."""
    written = done.total() - done["deleted"]
    counts = {f"spark.merge-into.num-target-rows-{each}": str(counted[each]) for each in _OUTCOMES}
    return {**counts, "added-records": str(written)} if written else counts


@given(_TASKS, st.sets(st.integers(0, 5)))
def test_counts_are_exact_unless_a_task_counted_again(
    tasks: list[list[str]], again: set[int]
) -> None:
    """The effect is exact if each task counted once; if rows counted twice, it is not."""
    done = Counter(row for task in tasks for row in task)
    repeated = Counter(row for n in again if n < len(tasks) for row in tasks[n])
    before = done["updated"] + done["deleted"] + done["copied"]
    after = before + done["inserted"] - done["deleted"]
    known = summary(done, done + repeated)
    effect = Effect(before, after, *merged_rows(known))
    assert is_exact(effect, known) == (not repeated)


def test_a_merge_that_only_inserts_has_no_counts_of_its_own() -> None:
    """To Spark it is an append, which adds all rows of its data files."""
    appended = {"added-records": "2"}
    assert merged_rows(appended) == (2, 0, 0)
    assert is_exact(Effect(3, 5, 2, 0), appended)
    assert not is_exact(Effect(3, 4, 2, 0), appended)


@pytest.mark.parametrize(
    "wrong", [Effect(3, 5, 3, 0), Effect(3, 3, 1, 0), Effect(3, 0, 1, 4), Effect(3, 4, 0, -1)]
)
def test_counts_that_do_not_add_up_are_refused(wrong: Effect) -> None:
    """A table with more or fewer rows than counted is never published."""
    with pytest.raises(Permanent, match="COUNT_MISMATCH"):
        checked(wrong)
    right = Effect(3, 3, 2, 2, updated=1)
    assert checked(right) is right
