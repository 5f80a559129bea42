"""A deployment's settings come from its environment, completely or not at all."""

from dataclasses import MISSING, fields

import pytest

from functions.settings import Settings, SlackSettings
from lakegate.errors import Permanent

NEEDED = {f"LAKEGATE_{f.name.upper()}": f.name for f in fields(Settings) if f.default is MISSING}
ENVIRONMENT = {variable: f"the {name}" for variable, name in NEEDED.items()}


def test_each_setting_is_a_variable() -> None:
    """Each required setting comes from the variable with its name; others have defaults."""
    settings = Settings.of({**ENVIRONMENT, "HOME": "/root"})
    assert {getattr(settings, name) for name in NEEDED.values()} == set(ENVIRONMENT.values())
    assert settings.clean_up_role_arn == ""
    assert settings.max_branches == 20


def test_numbers_are_numbers() -> None:
    """A numeric setting is read as a whole number."""
    settings = Settings.of({**ENVIRONMENT, "LAKEGATE_GRACE_SECONDS": "30"})
    assert settings.grace_seconds == 30


@pytest.mark.parametrize("text", ["soon", "1.5", "30s"])
def test_an_invalid_number_is_refused(text: str) -> None:
    """An invalid number is refused, and the error names the variable."""
    with pytest.raises(Permanent, match="LAKEGATE_GRACE_SECONDS"):
        Settings.of({**ENVIRONMENT, "LAKEGATE_GRACE_SECONDS": text})


@pytest.mark.parametrize("variable", NEEDED)
def test_a_missing_setting_is_named(variable: str) -> None:
    """An empty required setting is missing, and the error names the variable."""
    with pytest.raises(Permanent, match=rf": {variable}$"):
        Settings.of({**ENVIRONMENT, variable: ""})


def test_all_missing_settings_are_named_at_once() -> None:
    """All missing settings are named in one error."""
    with pytest.raises(Permanent) as refusal:
        Settings.of({})
    assert all(variable in refusal.value.message for variable in NEEDED)


def test_slack_needs_no_setting() -> None:
    """A deployment without Slack needs no setting; one with Slack names its secret."""
    assert SlackSettings.of({}) == SlackSettings("", "", "")
    assert SlackSettings.of({"LAKEGATE_SLACK_TOKEN_SECRET": "s"}).slack_token_secret == "s"
