"""What other tools read is read by those tools' own code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from access.contract.editor_schema import contract_schema
from access.deployment.checkout import ROOT
from access.ingestions.measures import Measure
from cli.operate.metrics import text

pytest.importorskip("check_jsonschema", reason="`make test-integrations` installs it")


def test_the_action_is_one() -> None:
    """action.yml fits the schema that GitHub's editors use."""
    from check_jsonschema.builtin_schemas import get_builtin_schema

    action = yaml.safe_load((ROOT / "action.yml").read_text())
    Draft7Validator(get_builtin_schema("vendor.github-actions")).validate(action)


def test_prometheus_reads_the_measures() -> None:
    """Prometheus's own parser finds each value with its labels, whatever is in them."""
    from prometheus_client.parser import text_string_to_metric_families

    odd = 'a"b\\c\nd,e="f"}'
    files = Measure("files", "Files.", {(("table", odd), ("state", "published")): 2.0})
    (family,) = text_string_to_metric_families(text([files], "dev"))
    (sample,) = family.samples
    assert (family.name, family.type, family.documentation) == ("lakegate_files", "gauge", "Files.")
    assert sample.labels == {"stage": "dev", "table": odd, "state": "published"}
    assert sample.value == 2


def test_editors_check_contracts_by_the_schema(tmp_path: Path) -> None:
    """A checker of JSON Schema that reads YAML itself takes the demo's contract and no other."""
    contract = ROOT / "contracts" / "nyc.flights.yaml"
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        contract.read_text().replace("logicalType: timestamp", "logicalType: timstamp")
    )
    assert wrong.read_text() != contract.read_text()
    schema = tmp_path / "contract.schema.json"
    schema.write_text(json.dumps(contract_schema()))
    for file, fits in ((contract, True), (wrong, False)):
        command = [sys.executable, "-m", "check_jsonschema", "--output-format", "json"]
        given = [*command, "--schemafile", str(schema), str(file)]
        said = subprocess.run(given, capture_output=True, text=True, check=False)
        assert (json.loads(said.stdout)["status"] == "ok") is fits
