"""Translate a SAM template as CloudFormation does, both as JSON; it needs aws-sam-translator."""

import json
import sys

from samtranslator.translator.transform import transform


class NoManagedPolicies:
    """A stand-in for AWS's managed policies, none of which the template uses."""

    def load(self) -> dict[str, str]:
        """Return the policies by name."""
        return {}


json.dump(transform(json.load(sys.stdin), {}, NoManagedPolicies()), sys.stdout)
