"""Translate a SAM template as CloudFormation does, both as JSON; it needs aws-sam-translator."""

import json
import os
import sys

from samtranslator.translator.transform import transform


class NoManagedPolicies:
    """A stand-in for AWS's managed policies, none of which the template uses."""

    def load(self) -> dict[str, str]:
        """Return the policies by name."""
        return {}


# It does not begin without a region, and makes the same of this template for every one.
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
json.dump(transform(json.load(sys.stdin), {}, NoManagedPolicies()), sys.stdout)
