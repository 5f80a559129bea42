"""The catalog behaves as Lakegate relies on, in memory and in Nessie."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from functions.adapters.nessie import MAIN, Catalog
from functions.health.conformance.scratch import NO_HASH, Deviates, Scratch, scratch
from functions.health.conformance.trial import BY_ADAPTER, BY_SERVER, tried
from functions.health.model import Finding, Status, ok
from lakegate.errors import Transient
from lakegate.refusals import RightMissing
from tests.contract.conftest import Servers
from tests.fakes import wire
from tests.fakes.catalog import FakeCatalog, FakeTable
from tests.fakes.clock import FakeClock


class Tried(NamedTuple):
    """The findings of a trial, and all references before and after it."""

    found: list[Finding]
    before: dict[str, str]
    after: dict[str, str]


class FakeWriter:
    """A writer of tables in memory."""

    def __init__(self, catalog: FakeCatalog) -> None:
        self._catalog = catalog

    def write(self, branch: str, table: str, state: str) -> str:
        """See Writer."""
        return self._catalog.commit(branch, table, FakeTable(state))

    def read(self, branch: str, table: str) -> str:
        """See Writer."""
        return getattr(self._catalog.table(branch, table), "uuid", "")

    def set_back(self, branch: str, to: str) -> None:
        """See Writer."""
        self._catalog.reset(branch, to)


def named(behaviour: Callable[..., None]) -> str:
    return behaviour.__name__


@pytest.mark.parametrize("behaviour", BY_ADAPTER, ids=named)
def test_the_fake_behaves_as_nessie(behaviour: Callable[[Scratch], None]) -> None:
    """The catalog in memory has each behaviour that is tried on servers."""
    fake = FakeCatalog(FakeClock())
    behaviour(Scratch(fake, FakeWriter(fake), MAIN, "a"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def tried_once(servers: Servers) -> Tried:
    """Return what was found on the server, and its references before and after."""
    token = servers.tokens["publisher"]
    catalog = Catalog(servers.nessie, token)
    before = catalog.references()
    return Tried(tried(servers.nessie, token), before, catalog.references())


@pytest.mark.stack
@pytest.mark.parametrize("behaviour", [*BY_ADAPTER, *BY_SERVER], ids=named)
def test_nessie_behaves_as_is_relied_on(tried_once: Tried, behaviour: Callable[..., None]) -> None:
    """A trial of the server finds each behaviour, through the adapter or beside it."""
    name = behaviour.__name__.replace("_", " ")
    assert [each for each in tried_once.found if each.check == name] == [
        ok(str(behaviour.__doc__), name)
    ]


@pytest.mark.stack
def test_a_trial_leaves_nothing(tried_once: Tried) -> None:
    """After a trial main stands where it stood, and there is no other branch or tag."""
    assert tried_once.after == tried_once.before


@pytest.mark.stack
def test_a_trial_that_breaks_off_leaves_nothing(servers: Servers) -> None:
    """Branches are deleted after a deviation, too."""
    token = servers.tokens["publisher"]
    before = Catalog(servers.nessie, token).references()
    with suppress(Deviates), scratch(servers.nessie, token) as (on, _):
        on.written(1)
        raise Deviates("NESSIE_DEVIATES", "it is broken")
    assert Catalog(servers.nessie, token).references() == before


def test_each_behaviour_has_a_name_and_a_sentence() -> None:
    """What is tried is told in one sentence each, under a name of its own."""
    every = [*BY_ADAPTER, *BY_SERVER]
    assert len({each.__name__ for each in every}) == len(every)
    for each in every:
        told = str(each.__doc__)
        assert told[0].isupper()
        assert told.endswith(".")
        assert "\n" not in told


class Forgetful(FakeCatalog):
    """A catalog whose merge answers a repeated request as if it had merged again."""

    def merge(self, *given: Any) -> str:
        """See Catalog.merge."""
        return super().merge(*given) or self.head(MAIN)


def test_another_behaviour_is_told() -> None:
    """A catalog that answers a repeated merge in another way deviates in what depends on it."""
    deviates = set()
    for behaviour in BY_ADAPTER:
        fake = Forgetful(FakeClock())
        try:
            behaviour(Scratch(fake, FakeWriter(fake), MAIN, "a"))  # type: ignore[arg-type]
        except Deviates:
            deviates.add(behaviour.__name__)
    assert deviates == {
        "a_merge_is_done_once",
        "an_empty_branch_changes_nothing",
        "only_what_was_named_is_merged",
    }


def test_a_server_that_is_away_is_told_without_the_token() -> None:
    """Each behaviour is a failed finding with its sentence, and none has the token."""
    found = tried(wire.nobody(), "a-token")
    assert {each.status for each in found} == {Status.FAIL}
    assert all("Here: Nessie did not answer at http" in each.message for each in found)
    assert "a-token" not in str(found)


def test_a_virgin_main_begins_once_in_memory() -> None:
    """Of several first commits of main one succeeds; branches can then be created and merged."""
    catalog = FakeCatalog(FakeClock(), virgin=True)
    assert not catalog.begun()
    assert [catalog.begin("ops") for _ in range(3)] == [True, False, False]
    assert len(list(catalog.log())) == 1


@pytest.mark.stack
def test_a_virgin_main_begins_once_in_nessie(servers: Servers) -> None:
    """Of several simultaneous first commits of main one succeeds and none fails."""
    assert sorted(servers.began) == [False, False, False, True]
    assert list(Catalog(servers.nessie, servers.tokens["reader"]).log())[-1].message == "Begin"


def test_a_nessie_that_is_busy_refuses_no_merge() -> None:
    """An overloaded server answers 409, which is transient and not a conflict."""
    main = {"type": "BRANCH", "name": "main", "hash": NO_HASH}
    busy = {"status": 409, "errorCode": "REFERENCE_CONFLICT", "message": "retries exhausted"}
    answers = wire.json("200 OK", {"reference": main}), wire.json("409 Conflict", busy)
    with wire.answering(*answers) as url, pytest.raises(Transient, match="retries exhausted"):
        Catalog(url, "token").merge("ingest/x", NO_HASH, NO_HASH, "message", {})


@pytest.mark.stack
def test_a_right_that_a_role_lacks_may_be_given(servers: Servers) -> None:
    """Who may not merge into main lacks a right (tests/contract/test_roles.py has every role's)."""
    publisher = Catalog(servers.nessie, servers.tokens["publisher"])
    other = Catalog(servers.nessie, servers.tokens["job"])
    before = publisher.head(MAIN)
    with scratch(servers.nessie, servers.tokens["publisher"]) as (on, _):
        branch, head = on.written(1)
        with pytest.raises(RightMissing, match="Nessie's rules do not allow this"):
            other.merge(branch, head, on.bases[branch], "m", {})
    assert publisher.head(MAIN) == before
