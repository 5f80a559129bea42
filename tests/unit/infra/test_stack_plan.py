"""The parameters of a stage's stack and the names of its parts."""

from pathlib import Path

import pytest

from infra.aws.site import choices
from infra.aws.stack_plan import parameters, refuse_unknown
from infra.stage import Stage, checked_name
from lakegate.errors import LakegateError

_ROOT = Path(__file__).parents[3]
_STAGE = Stage("shop", "123456789012", "eu-central-1")
_TEMPLATE = {
    "Parameters": {
        "Stage": {"Type": "String"},
        "NessieUri": {"Type": "AWS::SSM::Parameter::Value<String>"},
        "EmrApplicationId": {"Type": "AWS::SSM::Parameter::Value<String>"},
        "SlackChannel": {"Type": "String"},
    }
}


def test_facts_are_looked_up_under_the_stage() -> None:
    """The platform's facts are read from the stage's own SSM parameters."""
    assert parameters(_TEMPLATE, _STAGE, {"SlackChannel": "#lake"}) == {
        "Stage": "shop",
        "NessieUri": "/lakegate/shop/nessie-uri",
        "EmrApplicationId": "/lakegate/shop/emr-application-id",
        "SlackChannel": "#lake",
    }


def test_a_setting_of_the_other_stack_is_left_to_it() -> None:
    """Each stack gets its own settings from the one file."""
    assert "NessieTasks" not in parameters(_TEMPLATE, _STAGE, {"NessieTasks": "2"})


def test_an_unknown_setting_is_refused() -> None:
    """A misspelled setting is an error that lists the known settings."""
    with pytest.raises(LakegateError, match=r"SlackChanel.*SlackChannel"):
        refuse_unknown({"SlackChanel": "#lake"}, [_ROOT / "template.yaml"])


@pytest.mark.parametrize("name", ["", "9", "Dev", "a_b", "-a", "a" * 21, "a/b"])
def test_a_stage_has_a_name_that_buckets_can_have(name: str) -> None:
    """A stage's name that AWS would refuse later is refused at once."""
    with pytest.raises(LakegateError, match="cannot be a stage's name"):
        checked_name(name)


def test_names_follow_from_the_stage() -> None:
    """All names follow from stage and account."""
    assert checked_name("shop") == "shop"
    assert _STAGE.lake_bucket == "lakegate-shop-lake-123456789012"
    assert _STAGE.platform_stack == "lakegate-shop-platform"


def test_a_stages_file_gives_its_settings(tmp_path: Path) -> None:
    """Numbers become text, as parameters are; without a file nothing is set."""
    file = tmp_path / "shop.yml"
    assert choices(file) == {}
    file.write_text("KeepDays: 60\nSlackChannel: '#lake'\n")

    assert choices(file) == {"KeepDays": "60", "SlackChannel": "#lake"}


@pytest.mark.parametrize("text", ["- a\n", "a: [", "just words"])
def test_a_stages_file_without_settings_is_refused(tmp_path: Path, text: str) -> None:
    """A file that does not map names to values is an error with the file's name."""
    file = tmp_path / "shop.yml"
    file.write_text(text)

    with pytest.raises(LakegateError, match=r"shop\.yml"):
        choices(file)
