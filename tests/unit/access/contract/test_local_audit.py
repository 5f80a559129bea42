"""Which local files are audited."""

from pathlib import Path

from access.contract.local_audit import data_files


def test_a_directory_stands_for_what_would_be_ingested(tmp_path: Path) -> None:
    """Control files, markers and copies under way are no data; a file that is named is."""
    for name in ("a.csv", "a.csv.control.json", "_SUCCESS", ".gitkeep", "b.csv._COPYING_"):
        (tmp_path / name).touch()
    (tmp_path / "day").mkdir()
    assert list(data_files([tmp_path])) == [tmp_path / "a.csv"]
    assert list(data_files([tmp_path / "_SUCCESS"])) == [tmp_path / "_SUCCESS"]
