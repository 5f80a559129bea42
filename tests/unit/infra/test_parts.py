import socket
from pathlib import Path

import pytest

from infra.local.parts import choose_ports, known_ports


def test_ports_stay_the_same(tmp_path: Path) -> None:
    """Every server has a port of its own, and a second start the addresses of the first."""
    ports = choose_ports(tmp_path)
    assert len(set(ports.values())) == len(ports)
    assert choose_ports(tmp_path) == ports


def test_a_port_that_a_stranger_took_is_given_up(tmp_path: Path) -> None:
    """A port that another program uses is replaced, and the other ports stay."""
    first = choose_ports(tmp_path)
    with socket.create_server(("127.0.0.1", first["nessie"])):
        second = choose_ports(tmp_path)

    assert second["nessie"] != first["nessie"]
    assert second | {"nessie": 0} == first | {"nessie": 0}


def test_a_full_disk_leaves_the_last_ports(tmp_path: Path) -> None:
    """The ports that could not be stored are not the stack's, which keeps the last ones."""
    first = choose_ports(tmp_path)
    (tmp_path / "ports.json.new").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        choose_ports(tmp_path)

    assert known_ports(tmp_path) == first
