"""Set-up makes an environment once, and again if its inputs change or it is broken."""

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra import setup
from infra.versions import PYTHON

ROOT = Path(__file__).parents[3]


@dataclass
class Checkout:
    """A checkout with one environment, whose second command fails while there is no network."""

    root: Path
    requirements: bytes = b"a==1"
    network: bool = True

    def make(self) -> bool:
        """Return whether the environment was made; then all its commands must have run."""
        ran: list[str] = []
        path = self.root / "env"
        environment = setup.Environment(path, (self.requirements,), ("create", "install"))
        made = setup.make(environment, lambda command: self.run(command, ran))
        assert ran == (["create", "install"] if made else [])
        return made

    def run(self, command: str, ran: list[str]) -> None:
        ran.append(command)
        if command == "create":
            self.python.parent.mkdir(parents=True, exist_ok=True)
            self.python.touch()
        elif not self.network:
            raise setup.Failed("no network")

    @property
    def python(self) -> Path:
        return self.root / "env" / "bin" / "python"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Return a checkout that was set up."""
    made = Checkout(tmp_path / "checkout")
    assert made.make()
    return made


def test_it_is_made_once_and_again_after_a_change(checkout: Checkout, tmp_path: Path) -> None:
    """Other requirements, a lost Python or another place make the environment again, once.

    The scripts of a moved environment name the old path.
    """
    assert not checkout.make()
    checkout.requirements = b"a==2"
    assert checkout.make()
    assert not checkout.make()
    checkout.python.unlink()
    assert checkout.make()
    checkout.root = checkout.root.rename(tmp_path / "moved")
    assert checkout.make()
    assert not checkout.make()


@pytest.mark.parametrize("next_requirements", [b"a==1", b"a==2"])
def test_half_made_one_is_made_again(checkout: Checkout, next_requirements: bytes) -> None:
    """An incomplete environment never counts as current."""
    checkout.requirements, checkout.network = b"a==2", False
    with pytest.raises(setup.Failed):
        checkout.make()
    checkout.requirements, checkout.network = next_requirements, True
    assert checkout.make()


def test_failure_names_the_command() -> None:
    """A command that fails or cannot be started ends the set-up, and the error names it."""
    with pytest.raises(setup.Failed, match=r"exit status 3.*exit 3"):
        setup.run_command("sh -c 'exit 3'")
    with pytest.raises(setup.Failed, match="no-such-program"):
        setup.run_command("no-such-program")


def test_everything_installed_is_pinned_by_hash() -> None:
    """Each command that installs packages requires hashes or installs this project alone.

    The local stack's alone takes them from the same file, which pins all that it needs.
    """
    for environment in (
        setup.project_environment(setup.ROOT),
        setup.project_environment(setup.ROOT, only_local=True),
        setup.ministack_environment(setup.ROOT),
    ):
        for step in environment.steps:
            if " install " in step or " sync " in step:
                pinned = (
                    " --require-hashes ",
                    " --no-deps ",
                    " --constraints requirements/dev.txt ",
                )
                assert any(option in step for option in pinned)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(w for n in ("page", "spark", "local") for w in optional[n]),
    ]
    names = {re.match(r"[\w-]+", each)[0] for each in wanted} - {"lakegate"}  # type: ignore[index]
    locked = (ROOT / "requirements/dev.txt").read_text()
    assert names <= set(re.findall(r"^([\w-]+)==", locked, re.MULTILINE))


def test_a_devcontainer_sets_everything_up() -> None:
    """The container has the Python that set-up wants, and runs targets of the Makefile."""
    folder = ROOT / ".devcontainer"
    told = json.loads((folder / "devcontainer.json").read_text())
    image = (folder / told["build"]["dockerfile"]).read_text()
    assert image.startswith(f"FROM python:{PYTHON}-")
    make, *targets = told["postCreateCommand"].split()
    assert make == "make"
    assert set(targets) <= set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    )
