"""Snowflake follows main, tested with a double that checks each request to its SQL API."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from functions.adapters.secrets import Secret
from functions.downstream.refresh_lease import RefreshLeases
from functions.downstream.snowflake import Snowflake
from functions.downstream.snowflake_login import Login
from functions.downstream.snowflake_sql import Place, refuse_clashes
from functions.model.messages.refresh import Refresh
from lakegate.errors import Permanent, Transient
from tests.contract.aws import table_of
from tests.fakes import wire
from tests.fakes.snowflake import SnowflakeDouble, fingerprint, running

TABLE = "shop.orders"
THERE = '"LAKE"."SHOP"."ORDERS"'
FUNCTION_TIMEOUT = 60
LONGEST = FUNCTION_TIMEOUT + 30  # that a statement of a function's may go on
NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEYS = [rsa.generate_private_key(65537, 2048) for _ in range(2)]


def pem(key: rsa.RSAPrivateKey, password: str = "") -> str:
    """Return a private key as stored in the secret."""
    plain = serialization.NoEncryption()
    encryption = serialization.BestAvailableEncryption(password.encode()) if password else plain
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    return key.private_bytes(*form, encryption).decode()


@dataclass
class Vault:
    """Secrets Manager with one secret and its own clock."""

    document: dict[str, str]
    seconds: float = 0.0

    def get_secret_value(self, **_: str) -> dict[str, str]:
        """See boto3."""
        if not self.document:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        return {"SecretString": json.dumps(self.document)}


@dataclass
class Bench:
    """The adapter, Snowflake, the secret, and how long the adapter waited.

    `looked` and `waiting` happen once: before it takes the lease, and while Snowflake is at work.
    """

    there: SnowflakeDouble
    vault: Vault
    leases: RefreshLeases
    waited: list[float] = field(default_factory=list)
    tables: tuple[str, ...] = ()
    looked: Callable[[], object] | None = None
    waiting: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        """Log in with what the secret holds."""
        secret = Secret(self.vault, "lakegate/dev/snowflake", lambda: self.vault.seconds)
        self.snowflake = Snowflake(
            secret, self.leases, "lake", self._now, FUNCTION_TIMEOUT, self.tables, self._pause
        )

    def _now(self) -> datetime:
        happens, self.looked = self.looked, None
        if happens:
            happens()
        return self.there.now()

    def _pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        happens, self.waiting = self.waiting, None
        if happens:
            happens()

    def refresh(self, position: int, table: str = TABLE) -> bool:
        """Refresh Snowflake to a position."""
        return self.snowflake.refresh(at(position, table))


def at(position: int, table: str = TABLE) -> Refresh:
    """Return the refresh of a table to a position on main."""
    path = f"{table.replace('.', '/')}_1/metadata/{position}.metadata.json"
    return Refresh(table, position, f"s3://lake/warehouse/{path}")


def login(there: SnowflakeDouble, key: rsa.RSAPrivateKey = KEYS[0], **more: str) -> dict[str, str]:
    """Return the content of the secret."""
    who = {"account": "myorg-account1", "user": "lakegate", "role": "INGEST", "warehouse": "SMALL"}
    return {**who, "database": "LAKE", "private_key": pem(key), "url": there.address, **more}


@pytest.fixture
def there() -> Iterator[SnowflakeDouble]:
    """Yield Snowflake with one table."""
    with running(SnowflakeDouble(key=KEYS[0].public_key(), tables={THERE: ""})) as double:
        yield double


@pytest.fixture
def marks() -> Iterator[Any]:
    """Yield the leases' table, without a record."""
    with table_of("SnowflakeMarks") as table:
        yield table


@pytest.fixture
def leases(marks: Any) -> RefreshLeases:
    """Return the leases."""
    return RefreshLeases(marks)


@pytest.fixture
def bench(there: SnowflakeDouble, leases: RefreshLeases) -> Bench:
    """Return the adapter, logged in."""
    return Bench(there, Vault(login(there)), leases)


def later(bench: Bench) -> None:
    """Let the time pass until a message is delivered again."""
    bench.there.ahead += timedelta(seconds=6 * FUNCTION_TIMEOUT)


def test_a_table_reads_what_was_published(bench: Bench) -> None:
    """The file is relative to the external volume's base; role and warehouse are those given."""
    assert bench.refresh(3)
    assert bench.there.tables[THERE] == "shop/orders_1/metadata/3.metadata.json"
    (body,) = bench.there.bodies
    assert (body["role"], body["warehouse"], body["database"]) == ("INGEST", "SMALL", "LAKE")


@pytest.mark.parametrize("polls", [0, 1, 3])
def test_a_statement_is_waited_for(bench: Bench, polls: int) -> None:
    """A running statement is polled until it is done."""
    bench.there.polls = polls
    bench.refresh(3)
    assert bench.there.asked == ["POST", *["GET"] * polls]
    assert len(bench.waited) == polls


def test_a_statement_without_end_is_tried_again(bench: Bench) -> None:
    """A statement that runs over half a minute is retried later, and not recorded as done."""
    bench.there.polls = 1000
    with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
        bench.refresh(3)
    assert 25 < sum(bench.waited) < 40
    bench.there.polls = 0
    later(bench)
    assert bench.refresh(3)


@pytest.mark.parametrize("fault", [429, 500, 503, "lost"])
def test_a_lost_answer_is_requested_again_under_the_same_id(bench: Bench, fault: Any) -> None:
    """A lost answer is requested again under the same id, and the statement runs once."""
    bench.there.faults = [fault]
    bench.refresh(3)
    assert len(bench.there.ran) == 1
    assert bench.there.asked[:2] == ["POST", "POST"]


@pytest.mark.parametrize("status", [302, 404, 408, 429, 500, 502, 503, 504])
def test_an_outage_is_tried_again_later(bench: Bench, status: int) -> None:
    """An outage fails the message and records nothing."""
    bench.there.faults = [status] * 3
    with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
        bench.refresh(3)
    bench.there.faults = []
    later(bench)
    assert bench.refresh(3)


def test_a_table_that_is_not_there_is_refused_for_good(bench: Bench) -> None:
    """A missing table is a permanent error with Snowflake's message."""
    with pytest.raises(Permanent, match=r"SNOWFLAKE_REFUSED.*002003.*RETURNS"):
        bench.refresh(3, "shop.returns")
    assert bench.there.asked == ["POST"]


def test_only_the_tables_that_are_named_are_brought_along(
    there: SnowflakeDouble, leases: RefreshLeases
) -> None:
    """Snowflake gets no request for other tables."""
    bench = Bench(there, Vault(login(there)), leases, tables=(TABLE,))
    assert not bench.refresh(3, "shop.returns")
    assert there.asked == []
    assert bench.refresh(3)


def test_names_and_paths_say_nothing_else(there: SnowflakeDouble, leases: RefreshLeases) -> None:
    """Quotes and backslashes in names and paths are escaped."""
    evil = '"LA""KE; --"."S""; DROP"."SHOP$ORDERS"'
    there.tables = {evil: ""}
    bench = Bench(there, Vault(login(there, database='LA"KE; --', schema='S"; DROP')), leases)
    path = "a'; DROP TABLE x; --\\'/m.json"
    assert bench.snowflake.refresh(Refresh("shop.orders", 1, f"s3://lake/warehouse/{path}"))
    assert there.tables == {evil: path}


def test_no_table_is_brought_where_another_one_is(bench: Bench) -> None:
    """Snowflake gets no request for a table whose name there belongs to another."""
    bench.refresh(3)
    with pytest.raises(Permanent, match=r"NAME_TAKEN: Shop\.Orders and shop\.orders are one"):
        bench.refresh(4, "Shop.Orders")
    assert len(bench.there.ran) == 1


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}\.[a-z][a-z0-9_]{0,6}", fullmatch=True)


@given(st.sets(NAMES | st.sampled_from(["a.b_c", "a_b.c"]), min_size=2))
@pytest.mark.parametrize("place", [Place("LAKE"), Place("LAKE", "ALL")])
def test_two_tables_have_two_names(place: Place, tables: set[str]) -> None:
    """Tables that differ in more than case have different names in Snowflake."""
    assert len({place.table(table) for table in tables}) == len(tables)
    refuse_clashes(place, tables)


def test_a_file_outside_the_volume_is_refused(bench: Bench) -> None:
    """A file outside the volume is never requested."""
    with pytest.raises(Permanent, match="OUTSIDE_VOLUME"):
        bench.snowflake.refresh(Refresh(TABLE, 1, "s3://other/warehouse/x.json"))


def test_a_new_key_is_read_again(bench: Bench) -> None:
    """After a refused key the secret's new version is tried at once."""
    bench.refresh(3)
    bench.vault.document = login(bench.there, KEYS[1])
    bench.there.key = KEYS[1].public_key()
    assert bench.refresh(4)


def test_a_key_that_is_replaced_meanwhile_begins_no_second_statement(bench: Bench) -> None:
    """A statement under the old key has ended before the message comes again."""
    bench.refresh(3)
    bench.vault.document = login(bench.there, KEYS[1])
    bench.there.asked, bench.there.faults = [], ["none", 401]
    with pytest.raises(Transient, match="SNOWFLAKE_LOGIN_REFUSED"):
        bench.refresh(4)
    assert bench.there.asked == ["POST", "GET"]
    later(bench)
    assert bench.refresh(4)


def test_a_key_that_is_refused_is_tried_again_later(bench: Bench) -> None:
    """A refused key is an error that names the secret and not its content."""
    bench.there.key = KEYS[1].public_key()
    with pytest.raises(
        Transient, match=r"SNOWFLAKE_LOGIN_REFUSED.*lakegate/dev/snowflake"
    ) as refusal:
        bench.refresh(3)
    assert "PRIVATE" not in str(refusal.value)
    assert bench.there.ran == []


def test_a_key_with_a_passphrase_is_opened(there: SnowflakeDouble, leases: RefreshLeases) -> None:
    """An encrypted key works with its passphrase beside it."""
    secret = login(there, private_key=pem(KEYS[0], "open sesame"), passphrase="open sesame")
    assert Bench(there, Vault(secret), leases).refresh(3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"private_key": "no key"},
        {"private_key": ""},
        {"account": ""},
        {"private_key": pem(KEYS[0], "secret")},
    ],
    ids=["no key", "an empty key", "no account", "no passphrase"],
)
def test_a_secret_that_is_none_is_reported(
    there: SnowflakeDouble, leases: RefreshLeases, wrong: dict[str, str]
) -> None:
    """An invalid secret is an error that lists the required fields and no content."""
    with pytest.raises(Transient, match=r"BAD_SECRET.*lakegate/dev/snowflake") as refusal:
        Bench(there, Vault({**login(there), **wrong}), leases).refresh(3)
    assert "PRIVATE" not in str(refusal.value)


@pytest.mark.parametrize(
    ("account", "subject", "address"),
    [
        ("myorg-my_acc", "MYORG-MY_ACC.LAKEGATE", "https://myorg-my-acc.snowflakecomputing.com"),
        ("xy1.eu-west-1", "XY1.LAKEGATE", "https://xy1.eu-west-1.snowflakecomputing.com"),
    ],
)
def test_an_account_has_two_spellings(account: str, subject: str, address: str) -> None:
    """The token has the account without region in capitals, the address has no underscores."""
    who = {"account": account, "user": "lakegate", "database": "D", "private_key": pem(KEYS[0])}
    read = Login.read(json.dumps(who), "s")
    claims = jwt.decode(read.token(datetime.now(UTC)), options={"verify_signature": False})
    assert (claims["sub"], read.address) == (subject, address)
    assert claims["iss"] == f"{subject}.{fingerprint(KEYS[0].public_key())}"


def test_a_token_ends_soon(bench: Bench) -> None:
    """Each request has a new token, because tokens expire."""
    read = Login.read(json.dumps(bench.vault.document), "s")
    old = read.token(datetime.now(UTC) - timedelta(hours=1))
    assert not bench.there.knows(old)


@pytest.mark.parametrize("answer", wire.BROKEN_ANSWERS.values(), ids=wire.BROKEN_ANSWERS)
def test_nonsense_is_tried_again(
    there: SnowflakeDouble, leases: RefreshLeases, answer: bytes
) -> None:
    """Any nonsensical answer in Snowflake's place is not a success."""
    with wire.answering(answer) as address:
        bench = Bench(there, Vault(login(there, url=address)), leases)
        with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
            bench.refresh(3)
    later(bench)
    assert Bench(there, Vault(login(there)), leases).refresh(3)


def test_a_snowflake_that_is_away_is_tried_again(
    there: SnowflakeDouble, leases: RefreshLeases
) -> None:
    """An unreachable Snowflake is a transient error."""
    with pytest.raises(Transient, match="SNOWFLAKE_UNAVAILABLE"):
        Bench(there, Vault(login(there, url=wire.nobody())), leases).refresh(3)


class Killed(BaseException):
    """The function crashes here."""


def die() -> None:
    """Crash."""
    raise Killed


def test_of_two_at_once_one_leaves_it_for_later(
    there: SnowflakeDouble, leases: RefreshLeases
) -> None:
    """While a refresh runs, Snowflake gets no other request for the table."""
    first, second = (Bench(there, Vault(login(there)), leases) for _ in range(2))

    def meanwhile() -> None:
        for position in (3, 4):
            with pytest.raises(Transient, match="LEASED"):
                second.refresh(position)
        assert not second.refresh(2)

    first.waiting = meanwhile
    assert first.refresh(3)
    assert len(there.ran) == 1
    assert second.refresh(4)
    assert there.tables[THERE].endswith("/4.metadata.json")


def test_a_lease_holder_looks_again(there: SnowflakeDouble, leases: RefreshLeases) -> None:
    """A position that became outdated before the lease is not requested."""
    first, second = (Bench(there, Vault(login(there)), leases) for _ in range(2))
    first.looked = lambda: second.refresh(4)
    assert not first.refresh(3)
    assert len(there.ran) == 1
    assert first.refresh(5)


def test_a_dead_holder_is_waited_for(there: SnowflakeDouble, leases: RefreshLeases) -> None:
    """A crashed function's lease lasts as long as its statement may run."""
    bench = Bench(there, Vault(login(there)), leases, waiting=die)
    with pytest.raises(Killed):
        bench.refresh(3)
    there.ahead = timedelta(seconds=LONGEST)
    with pytest.raises(Transient, match="LEASED"):
        bench.refresh(4)
    later(bench)
    assert bench.refresh(4)


def test_a_refused_refresh_holds_up_no_other(bench: Bench) -> None:
    """After a refused statement the next refresh starts at once."""
    there = bench.there.tables.pop(THERE)
    with pytest.raises(Permanent, match="SNOWFLAKE_REFUSED"):
        bench.refresh(3)
    bench.there.tables[THERE] = there
    assert bench.refresh(4)


STEPS = st.lists(
    st.tuples(
        st.integers(1, 9),
        st.sampled_from(["alone", "looked", "waiting", "dies"]),
        st.sampled_from([0, 25, 65, LONGEST - 1, 6 * FUNCTION_TIMEOUT]),
    ),
    min_size=2,
    max_size=8,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
@example([(1, "looked", 0), (1, "dies", 6 * FUNCTION_TIMEOUT), (2, "alone", 0)])
def test_however_functions_meet_it_only_goes_forward(
    there: SnowflakeDouble, marks: Any, steps: Sequence[tuple[int, str, int]]
) -> None:
    """However functions overlap and crash, an older file never replaces a newer one."""
    left, before = list(steps), len(there.ran)

    def step() -> None:
        if not left:
            return
        position, how, passes = left.pop(0)
        bench = Bench(there, Vault(login(there)), RefreshLeases(marks))
        bench.looked = step if how == "looked" else None
        bench.waiting = {"waiting": step, "dies": die}.get(how)
        there.hangs = how == "dies"
        with suppress(Killed, Transient):
            bench.refresh(position)
        there.ahead += timedelta(seconds=passes)
        there.go_on()

    marks.delete_item(Key={"table": TABLE})
    while left:
        step()
    there.ahead += timedelta(seconds=LONGEST)
    there.go_on()
    seen = [int(re.findall(r"(\d+)\.metadata", sql)[0]) for sql in there.ran[before:]]
    assert seen == sorted(seen)
