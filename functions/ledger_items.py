"""An ingestion as DynamoDB's item, and back."""

import dataclasses
import json
from typing import Any

from functions.brief import Brief
from functions.ingestion import IN_FLIGHT, Action, Approval, Ingestion, State
from lakegate.batch import Part
from lakegate.change import Change
from lakegate.landing import LandedObject
from lakegate.report import Reason

_LANDED = tuple(f.name for f in dataclasses.fields(LandedObject))
_JSON = (
    *("times", "tally", "checks", "group", "approval", "doomed", "replaced", "change"),
    *("actions", "parts"),
)
_NUMBERS = ("revision", "attempt", "failures", "rows", "tries_from", "replaced_rows", "recorded")


def to_item(ingestion: Ingestion) -> dict[str, Any]:
    """The item that keeps an ingestion."""
    item = {f.name: getattr(ingestion, f.name) for f in dataclasses.fields(ingestion)}
    landed = dataclasses.asdict(item.pop("landed"))
    reason = item.pop("reason")
    item |= landed
    if not item["etag"]:
        del item["etag"]  # a key of an index, where "" is refused
    item |= {name: json.dumps(item[name], default=_plain) for name in _JSON}
    item["state"] = ingestion.state.value
    item |= {"landed_day": landed["landed_at"][:10], "brief": Brief.of(ingestion).to_json()}
    if reason:
        item |= {"reason_code": reason.code, "reason": reason.message}
    if ingestion.parts:
        item["tables"] = list(ingestion.tables)  # by which it is found; the parts are one text
    if ingestion.unfinished:
        item["unfinished"] = "yes"
    if ingestion.unrecorded:
        item["unrecorded"] = "yes"
    return item


def size(ingestion: Ingestion) -> int:
    """Return the bytes of an ingestion's item, as DynamoDB counts them."""
    return sum(len(f"{name}{value}".encode()) for name, value in to_item(ingestion).items())


def from_item(item: dict[str, Any]) -> Ingestion:
    """The ingestion that an item keeps; what an older release did not write has its default.

    But what ended under a release that announced nothing is not to be announced any more.
    """
    names = {f.name for f in dataclasses.fields(Ingestion)}
    fields = {name: value for name, value in item.items() if name in names}
    fields |= {name: json.loads(item[name]) for name in _JSON if name in item}
    fields |= {name: int(item[name]) for name in _NUMBERS if name in item}
    fields.setdefault("announced", State(item["state"]) not in IN_FLIGHT)
    landed = {"etag": ""} | {name: item[name] for name in _LANDED if name in item}
    landed |= {"size": int(item["size"])}
    return Ingestion(
        **fields
        | {
            "landed": LandedObject(**landed),
            "state": State(item["state"]),
            "checks": tuple(fields["checks"]),
            "group": tuple(fields.get("group", ())),
            "replaced": tuple(fields.get("replaced", ())),
            "actions": tuple(Action(**each) for each in fields.get("actions", ())),
            "reason": Reason(item["reason_code"], item["reason"]) if "reason" in item else None,
            "approval": _approval(fields.get("approval")),
            "change": Change(**fields["change"]) if fields.get("change") else None,
            "parts": tuple(Part(**part) for part in fields.get("parts", ())),
        }
    )


def _plain(value: Any) -> dict[str, Any]:
    ours = isinstance(value, Action | Approval | Change | Part)
    return dataclasses.asdict(value) if ours else dict(value)


def _approval(found: dict[str, Any] | None) -> Approval | None:
    return Approval(**found | {"checks": tuple(found["checks"])}) if found else None
