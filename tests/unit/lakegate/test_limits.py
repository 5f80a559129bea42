"""The limits of a deployment, which are settings."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from functions.model.ingestion import State
from functions.settings import Settings
from lakegate.contract.model import ContractInvalid, parse
from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from tests import template
from tests.compiled import Compiled
from tests.fakes.deployment import ORDERS, SETTINGS, Deployment
from tests.unit.lambdas.test_settings import ENVIRONMENT

PAGE = (Path(__file__).parents[3] / "docs" / "limits.md").read_text()
NAMES = [field.name for field in fields(Limits)]


@pytest.mark.parametrize("name", NAMES)
def test_each_limit_is_a_setting(name: str) -> None:
    """Each limit comes from the variable of its name, and has a default."""
    given = Settings.of({**ENVIRONMENT, f"LAKEGATE_{name.upper()}": "7"})
    assert given.limits == replace(DEFAULTS, **{name: 7})
    assert Settings.of(ENVIRONMENT).limits == DEFAULTS


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1e9", "²"])
def test_a_limit_is_a_whole_number_above_zero(text: str) -> None:
    """A limit that is not a positive whole number is refused by its name."""
    with pytest.raises(Permanent, match="BAD_SETTING: LAKEGATE_MOST_ROWS"):
        Limits.of({"LAKEGATE_MOST_ROWS": text})


@pytest.mark.parametrize("name", NAMES)
def test_each_limit_is_written_down(name: str) -> None:
    """The page of limits lists the variable and the default of each limit."""
    (row,) = [line for line in PAGE.splitlines() if f"`LAKEGATE_{name.upper()}`" in line]
    assert f"{getattr(DEFAULTS, name):,}" in row


@pytest.mark.parametrize(("size", "code"), [(1, "PUBLISHED"), (100, "PUBLISHED"), (101, "")])
def test_a_landed_file_has_a_limit(size: int, code: str) -> None:
    """A file at the size limit is ingested; with one byte more no job is started."""
    deployment = Deployment(replace(SETTINGS, limits=Limits(largest_object=100)))
    landed = deployment.land("shop/orders/a.csv", b"x" * size)
    deployment.settle()
    ended = deployment.ingestion(landed)
    if code:
        assert ended.state is State.PUBLISHED
        return
    assert ended.reason
    assert (ended.state, ended.reason.code) == (State.ERRORED, "TOO_LARGE")
    assert deployment.jobs.runs() == []
    assert len(deployment.alerts.posted) == 1


def test_the_job_gets_the_limits() -> None:
    """A job run uses the deployment's limits, not its own release's."""
    limits = Limits(most_columns=3)
    deployment = Deployment(replace(SETTINGS, limits=limits))
    deployment.land("shop/orders/a.csv")
    deployment.deliver()
    (run,) = deployment.jobs.runs()
    assert deployment.jobs.spec(run.id).limits == limits


def test_a_contract_has_a_limit_of_values() -> None:
    """A contract at the limit of keys and values is read, and one more is refused."""
    assert parse(ORDERS, "orders", Limits(most_contract_values=46)).table == "shop.orders"
    with pytest.raises(ContractInvalid, match="more than 45 keys and values"):
        parse(ORDERS, "orders", Limits(most_contract_values=45))


def test_a_contract_has_a_limit_of_bytes() -> None:
    """A contract at the limit of bytes is read, and one more is refused."""
    assert parse(ORDERS, "orders", Limits(largest_contract=len(ORDERS))).table == "shop.orders"
    with pytest.raises(ContractInvalid, match="longer than"):
        parse(ORDERS, "orders", Limits(largest_contract=len(ORDERS) - 1))


@pytest.mark.parametrize("name", NAMES)
def test_each_limit_is_a_parameter_of_the_template(name: str) -> None:
    """The template has a parameter of the same name and default for each limit."""
    parameter = "".join(word.capitalize() for word in name.split("_"))
    assert template.defaults()[parameter] == str(getattr(DEFAULTS, name))
    assert f" LAKEGATE_{name.upper()}: !Ref {parameter}\n" in template.text()
    assert Limits.chosen({parameter: "7", "SlackChannel": "#x"}) == replace(DEFAULTS, **{name: 7})


@pytest.mark.parametrize(("chosen", "reserved"), [({}, None), ({"ActionConcurrency": "5"}, "5")])
def test_the_address_for_buttons_takes_what_is_set_of_the_account(
    chosen: dict[str, str], reserved: str | None
) -> None:
    """The function for buttons uses reserved instances only where the parameter sets them.

    The default reserves none: a new account has 10, and refuses every reservation.
    """
    app = Compiled.of(Path(__file__).parents[3] / "template.yaml", **chosen)
    function = app.resolve(app.resources["OnActionLambdaFunction"]["Properties"])
    assert function.get("ReservedConcurrentExecutions") == reserved
