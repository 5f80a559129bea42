"""What CloudFormation makes of a SAM template, both as JSON: run where aws-sam-translator is."""

import json
import sys

from samtranslator.translator.transform import transform


class NoManagedPolicies:
    """Stands for AWS's managed policies, of which the template uses none."""

    def load(self) -> dict[str, str]:
        """By name."""
        return {}


json.dump(transform(json.load(sys.stdin), {}, NoManagedPolicies()), sys.stdout)
