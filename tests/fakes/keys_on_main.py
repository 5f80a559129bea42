"""The promise of write modes: main has each primary key once, with the newest row."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from functions.model.commits import Commit
from functions.model.merge_commit import Published, published, tables
from functions.pipeline.start.landing_order import OUT_OF_ORDER
from lakegate.job.landing import ingestion_id
from tests.fakes.deployment import TABLE, Deployment
from tests.fakes.rows import LEFT, keys_in, place_of, rows_of_file, rows_of_source, sources_in

_Keys = Mapping[str, list[str]]  # the sources of the rows with each key


def check_keys(deployment: Deployment) -> None:
    """Raise AssertionError if a file replaced other rows than it should, or none where it should.

    A key may be there twice if it was so before files replaced rows.
    """
    for commit in deployment.catalog.log():
        named = [each for each in published(commit) if each.mode]
        if named and named[0].mode == "overwrite":
            _has_only(deployment, commit, named[-1])
        elif named:
            _replaced_their_keys(deployment, commit, named)
    if deployment.upserts_since and not deployment.others.undid:
        _nothing_is_appended(deployment)


def _has_only(deployment: Deployment, commit: Commit, by: Published) -> None:
    table = deployment.catalog.table(commit.hash, TABLE)
    found = sorted(row for file in table.files for row in rows_of_file(file)) if table else []
    assert found == sorted(rows_of_source(_source(by))), f"not only its rows: {by}"


def _replaced_their_keys(
    deployment: Deployment, commit: Commit, named: Sequence[Published]
) -> None:
    """Raise AssertionError unless main has what the files leave one after the other."""
    state = _keys(deployment, commit.parent)
    for by in named:
        latest = _is_latest(deployment, by)
        if not latest:
            _is_newest(deployment, state, by)
        state = _after(state, _source(by), latest=latest)
    after = _keys(deployment, commit.hash)
    for key in state.keys() | after.keys():
        found, expected = (sorted(each.get(key, [])) for each in (after, state))
        assert found == expected, f"of the key {key} there is {found}, not {expected}: {named}"


def _after(before: _Keys, mine: str, *, latest: bool) -> _Keys:
    """Return the sources of the rows with each key after one more file."""
    state = dict(before)
    for key in keys_in(mine):
        there = before.get(key, [])
        newer = [each for each in there if latest and place_of(each) > place_of(mine)]
        state[key] = newer + [mine] * max(len(there) - len(newer), not there)
    return state


def _is_newest(deployment: Deployment, before: _Keys, by: Published) -> None:
    """Raise AssertionError if it replaced rows of a file that landed later, unapproved."""
    if deployment.ledger.has_lost or deployment.others.undid:
        return
    history = deployment.ledger.history(by.id)
    if by.approved_by and any(i.reason and i.reason.code == OUT_OF_ORDER for i in history):
        return
    landed = {f"{each.uri}@{each.version}": each for each in deployment.landing.landed()}
    order = {source: (each.landed_at, ingestion_id(each)) for source, each in landed.items()}
    replaced = {each for key in keys_in(_source(by)) for each in before.get(key, ())}
    newer = [each for each in replaced if order[each] > order[_source(by)]]
    assert not newer, f"it replaced rows of {newer}, which landed later: {by}"


def _nothing_is_appended(deployment: Deployment) -> None:
    """Raise AssertionError if a key came once more to a table whose files replace rows by key."""
    upserts = False
    for commit in _since(deployment):
        for each in published(commit) if TABLE in tables(commit) else ():
            if not (each.mode or each.kind) and upserts:
                there = _keys(deployment, commit.parent)
                twice = [key for key in keys_in(_source(each)) if there.get(key)]
                assert not twice, f"the keys {twice} are there twice, appended by {each}"
            upserts |= each.mode == "upsert"


def _since(deployment: Deployment) -> Iterator[Commit]:
    """Return main's commits since the contract requires that files replace rows by key."""
    found = []
    for commit in deployment.catalog.log():
        if commit.hash == deployment.upserts_since:
            break
        found.append(commit)
    return reversed(found)


def _keys(deployment: Deployment, at: str) -> _Keys:
    table = deployment.catalog.table(at, TABLE)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in table.files if table else ():
        for line in sources_in(file):
            for key in keys_in(line):
                found[key].append(line.partition(LEFT)[0])
    return found


def _is_latest(deployment: Deployment, by: Published) -> bool:
    key, _, version = by.contract.rpartition("@")
    return bool(deployment.lake.contract_at(key, version).contract.write_mode.latest_by)


def _source(by: Published) -> str:
    return f"{by.object}@{by.version}"
