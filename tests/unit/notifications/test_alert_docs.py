"""The examples in docs/alerts.md work: secret, settings and the app's manifest."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from functions.notifications.slack import SlackSecret
from infra import template

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/alerts.md").read_text("utf-8")
APP = template.read(ROOT / "template.yaml")


def examples(language: str) -> list[str]:
    """Return the examples in a language."""
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_secret_is_one() -> None:
    """The functions can read the JSON of the example secret."""
    (secret,) = examples("json")
    assert SlackSecret.of(secret) == SlackSecret(**json.loads(secret))


def test_the_settings_are_parameters_of_the_template() -> None:
    """Each setting in the page is a parameter that accepts its value."""
    shown: dict[str, Any] = {}
    for text in examples("yaml"):
        shown |= yaml.safe_load(text)
    shown = {name: value for name, value in shown.items() if name[0].isupper()}
    assert len(shown) == 6
    for name, value in shown.items():
        parameter = APP["Parameters"][name]
        assert re.fullmatch(parameter.get("AllowedPattern", ".*"), value), name
        assert value in parameter.get("AllowedValues", [value]), name
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", TEXT))
    assert named <= APP["Parameters"].keys() | APP["Outputs"].keys()


@pytest.mark.parametrize("name", ["data-alerts.fifo", "data-alerts:0a1b2c3d-subscription", ""])
def test_only_a_standard_topic_is_accepted(name: str) -> None:
    """A FIFO topic refuses messages without a group, so no alert would ever reach it."""
    topic = APP["Parameters"]["AlertTopicArn"]
    accepted = topic["AllowedPattern"]
    assert re.fullmatch(accepted, "arn:aws:sns:eu-central-1:123456789012:data-alerts")
    assert not re.fullmatch(accepted, f"arn:aws:sns:eu-central-1:123456789012:{name}")
    assert "FIFO" in topic["ConstraintDescription"]


def test_the_app_may_write_and_nothing_else() -> None:
    """The manifest's only scope suffices for posting and changing messages."""
    (manifest,) = [text for text in examples("yaml") if "oauth_config" in text]
    assert yaml.safe_load(manifest)["oauth_config"]["scopes"] == {"bot": ["chat:write"]}


def test_the_tables_and_queues_are_called_so() -> None:
    """Every resource that the page names is in the template."""
    names = json.dumps(APP["Resources"])
    for name in set(re.findall(r"lakegate-<stage>-([a-z.-]+)", TEXT)) | {"digest"}:
        assert f"lakegate-${{Stage}}-{name}" in names, name
