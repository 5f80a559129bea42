"""The key by which the platform's Nessie checks tokens: a parameter of its stack."""

import json

from infra.cloudformation import Stacks

_PARAMETER = "NessiePublicKey"


def give_key(stacks: Stacks, platform: str, public_key: str) -> bool:
    """Have the stack `platform` run Nessie with this key; its tasks are replaced one by one.

    Returns False where there is no such stack, since Nessie is somebody's own. A stack that has the
    key stays as it is. Raises LakegateError DEPLOYMENT_FAILED.
    """
    if not stacks.exists(platform):
        return False
    given = stacks.parameters(platform)
    if given.get(_PARAMETER) != public_key:
        template = {"TemplateBody": json.dumps(stacks.template(platform), separators=(",", ":"))}
        plan = stacks.plan(platform, template, {**dict.fromkeys(given), _PARAMETER: public_key})
        if plan:
            stacks.carry_out(plan)
    return True
