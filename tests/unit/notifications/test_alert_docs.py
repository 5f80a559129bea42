"""What docs/alerts.md shows can be taken as it is: secret, settings, the app's manifest."""

import json
import re
from pathlib import Path
from typing import Any

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
    """The JSON that people are to put into the secret is what the functions read."""
    (secret,) = examples("json")
    assert SlackSecret.of(secret) == SlackSecret(**json.loads(secret))


def test_the_settings_are_parameters_of_the_template() -> None:
    """Each setting that is shown or named is a parameter, its value one that it takes."""
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


def test_the_app_may_write_and_nothing_else() -> None:
    """The manifest's one scope is what posting and changing messages takes."""
    (manifest,) = [text for text in examples("yaml") if "oauth_config" in text]
    assert yaml.safe_load(manifest)["oauth_config"]["scopes"] == {"bot": ["chat:write"]}


def test_the_tables_and_queues_are_called_so() -> None:
    """Every name of a resource that is told is one that the template gives."""
    names = json.dumps(APP["Resources"])
    for name in set(re.findall(r"lakegate-<stage>-([a-z.-]+)", TEXT)) | {"digest"}:
        assert f"lakegate-${{Stage}}-{name}" in names, name
