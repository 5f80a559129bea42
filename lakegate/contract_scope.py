"""Which rows a rule of a contract looks at: those of the file, or those of the whole table."""

from lakegate.checks import Metric, Scope
from lakegate.contract_fields import Field
from lakegate.contract_yaml import suggestion

_KNOWN = ("scope",)
_BEYOND = (Metric.DUPLICATE, Metric.ROWS)


def read_scope(rule: Field, metric: Metric) -> Scope:
    """The scope in a rule's `customProperties`, which is the file's unless it is given."""
    scopes = [_scope(item) for item in rule.at("customProperties").items()]
    if len(scopes) > 1:
        rule.refuse("gives more than the scope, once", "customProperties")
    scope = scopes[0] if scopes else Scope.FILE
    if scope is Scope.TABLE and metric not in _BEYOND:
        wanted = " and ".join(_BEYOND)
        reason = f"{metric} looks at the file alone: only {wanted} can look at the table"
        rule.refuse(reason, "customProperties")
    return scope


def _scope(item: Field) -> Scope:
    item.limit_keys(("property", "value"), ("id", "description", "vendor"))
    name = item.required_text("property")
    if name and name not in _KNOWN:
        item.refuse(f"{name!r} is no property of a rule{suggestion(name, _KNOWN)}", "property")
        return Scope.FILE
    return Scope(item.choice("value", tuple(Scope)) or Scope.FILE)
