"""A deployment's settings come from its environment, whole or not at all."""

from dataclasses import MISSING, fields

import pytest

from functions.settings import Settings, SlackSettings
from lakegate.errors import Permanent

NEEDED = {f"LAKEGATE_{f.name.upper()}": f.name for f in fields(Settings) if f.default is MISSING}
ENVIRONMENT = {variable: f"the {name}" for variable, name in NEEDED.items()}


def test_each_setting_is_a_variable() -> None:
    """Each setting that is needed comes from the variable of its name; the others have defaults."""
    settings = Settings.of({**ENVIRONMENT, "HOME": "/root"})
    assert {getattr(settings, name) for name in NEEDED.values()} == set(ENVIRONMENT.values())
    assert settings.clean_up_role_arn == ""
    assert settings.max_branches == 20


def test_numbers_are_numbers() -> None:
    """A setting that counts something is read as a whole number."""
    settings = Settings.of({**ENVIRONMENT, "LAKEGATE_GRACE_SECONDS": "30"})
    assert settings.grace_seconds == 30


@pytest.mark.parametrize("text", ["soon", "1.5", "30s"])
def test_what_is_no_number_is_refused(text: str) -> None:
    """A setting that must be a whole number and is not is named."""
    with pytest.raises(Permanent, match="LAKEGATE_GRACE_SECONDS"):
        Settings.of({**ENVIRONMENT, "LAKEGATE_GRACE_SECONDS": text})


@pytest.mark.parametrize("variable", NEEDED)
def test_a_missing_setting_is_named(variable: str) -> None:
    """A setting that is empty is missing, and refused by its variable's name."""
    with pytest.raises(Permanent, match=rf": {variable}$"):
        Settings.of({**ENVIRONMENT, variable: ""})


def test_all_missing_settings_are_named_at_once() -> None:
    """Whoever sets a deployment up learns of everything that is missing in one go."""
    with pytest.raises(Permanent) as refusal:
        Settings.of({})
    assert all(variable in refusal.value.message for variable in NEEDED)


def test_slack_needs_no_setting() -> None:
    """A deployment without Slack sets nothing for it; one with Slack names its secret."""
    assert SlackSettings.of({}) == SlackSettings("", "", "")
    assert SlackSettings.of({"LAKEGATE_SLACK_TOKEN_SECRET": "s"}).slack_token_secret == "s"
