"""The balance finds the origin of a table's rows, and the commit that is wrong."""

import pytest

from functions.adapters.iceberg.files import TableRows
from tests.unit.operations.main_history import History


def test_others_may_add_and_remove() -> None:
    """Other writers' changes are listed by commit, those without effect on rows as well."""
    history = History()
    history.publish([10])
    more, same, less = history.by_others(5), history.by_others(0), history.by_others(-7)
    history.publish([3])
    found = history.balance()
    assert [(gain.commit.hash, gain.rows) for gain in found.others] == [
        (more.hash, 5),
        (same.hash, 0),
        (less.hash, -7),
    ]
    assert (found.rows.live, found.published, found.gained_by_others, found.off) == (11, 13, -2, 0)
    assert not found.wrong
    assert found.unaccounted == 0


def test_errors_that_cancel_each_other_out_are_found() -> None:
    """A lost and a doubled file are found even if the total is right."""
    history = History()
    lost = history.publish([3], gain=0)
    history.publish([3])
    doubled = history.publish([3], gain=6)
    found = history.balance()
    assert [each.commit.hash for each in found.wrong] == [lost.hash, doubled.hash]
    assert (found.off, found.unaccounted) == (0, 0)


def test_rows_that_delete_files_name_are_gone() -> None:
    """Rows removed by position deletes are subtracted."""
    history = History()
    history.publish([10])
    deleted = history.by_others(0)
    history.at[deleted.hash] = TableRows("uuid", 10, position_deletes=4)
    found = history.balance()
    assert [gain.rows for gain in found.others] == [-4]
    assert found.off == 0


@pytest.mark.parametrize(("rows", "is_wrong"), [(13, False), (14, True), (4, True)])
def test_delete_files_that_hide_nothing_may_go_with_any_commit(rows: int, is_wrong: bool) -> None:
    """A commit may seem to gain as many rows as they hid once, and no more."""
    history = History()
    history.publish([10])
    deleted = history.by_others(0)
    history.at[deleted.hash] = TableRows("uuid", 10, position_deletes=4)
    published = history.publish([3])
    history.at[published.hash] = TableRows("uuid", rows)
    found = history.balance()
    assert [each.commit.hash for each in found.wrong] == [published.hash] * is_wrong
    assert found.unaccounted == 0
