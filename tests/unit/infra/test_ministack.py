from datetime import UTC, datetime
from pathlib import Path

from infra.local import ministack

_NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
_OLD, _NEW = "http://127.0.0.1:20001", "http://127.0.0.1:20002"


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_queues_follow_ministack_to_another_port(tmp_path: Path) -> None:
    """ministack stores queues under their full address; the objects of a deployed stack stay."""
    state = tmp_path / "ministack" / "state"
    queues = write(state / "sqs.json", f'{{"{_OLD}/000000000000/uploads": "{_OLD}/elsewhere"}}')
    write(state / "cloudformation.json", "{}")
    landed = write(tmp_path / "ministack" / "s3" / "landing" / "file.csv", "a,b")

    ministack.prepare(tmp_path, _NEW, _NOW)

    assert queues.read_text() == f'{{"{_NEW}/000000000000/uploads": "{_OLD}/elsewhere"}}'
    assert landed.read_text() == "a,b"


def test_objects_without_a_deployment_are_set_aside(tmp_path: Path) -> None:
    """After a kill in the first deployment the next one starts again and deletes nothing."""
    write(tmp_path / "ministack" / "s3" / "landing" / "file.csv", "a,b")

    ministack.prepare(tmp_path, _NEW, _NOW)

    aside = tmp_path / "ministack" / "s3-set-aside-20261121-120000"
    assert list((tmp_path / "ministack" / "s3").iterdir()) == []
    assert (aside / "landing" / "file.csv").read_text() == "a,b"
