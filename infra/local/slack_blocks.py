"""What Slack takes as the blocks of a message, as far as its Block Kit reference sets limits.

What is wrong is said in Slack's own words. Of blocks that carry no text of ours, only the required
properties are checked.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

Schema = dict[str, Any]

_MOST_BLOCKS = 50


def _string(longest: int) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def _text(longest: int, *types: str) -> Schema:
    """A text object of one of these types, or of either."""
    kind = {"enum": types or ("plain_text", "mrkdwn")}
    flag = {"type": "boolean"}
    known = {"type": kind, "text": _string(longest), "emoji": flag, "verbatim": flag}
    return _object(["type", "text"], **known)


def _object(required: list[str], **properties: Schema) -> Schema:
    """An object that may have these properties and no others."""
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _block(required: list[str], **properties: Schema) -> Schema:
    return _object(required, type={}, block_id={"type": "string", "maxLength": 255}, **properties)


def _list(most: int, items: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "maxItems": most, "items": items}


def _either(type_: str, then: Schema, otherwise: Schema) -> Schema:
    has_type = {"required": ["type"], "properties": {"type": {"const": type_}}}
    return {"if": has_type, "then": then, "else": otherwise}


_FIELDS = _list(10, _text(2000))
_ELEMENT: Schema = {"type": "object", "required": ["type"]}
_CONFIRM = _object(
    ["title", "text", "confirm", "deny"],
    title=_text(100, "plain_text"),
    text=_text(300),
    confirm=_text(30, "plain_text"),
    deny=_text(30, "plain_text"),
    style={"enum": ["primary", "danger"]},
)
_BUTTON = _object(
    ["type", "text"],
    type={},
    text=_text(75, "plain_text"),
    action_id=_string(255),
    url=_string(3000),
    value=_string(2000),
    style={"enum": ["primary", "danger"]},
    confirm=_CONFIRM,
    accessibility_label=_string(75),
)
_INPUT = _object(
    ["type"],
    type={"const": "plain_text_input"},
    action_id=_string(255),
    initial_value={"type": "string"},
    multiline={"type": "boolean"},
    min_length={"type": "integer", "minimum": 0, "maximum": 3000},
    max_length={"type": "integer", "minimum": 1, "maximum": 3000},
    placeholder=_text(150, "plain_text"),
)
_IMAGE = {"image_url": _string(3000), "slack_file": {"type": "object"}, "alt_text": _string(2000)}
_BLOCKS: dict[str, Schema] = {
    "section": {
        **_block([], text=_text(3000), fields=_FIELDS, accessory=_ELEMENT, expand={}),
        "anyOf": [{"required": ["text"]}, {"required": ["fields"]}],
    },
    "header": _block(["text"], text=_text(150, "plain_text")),
    "divider": _block([]),
    "context": _block(
        ["elements"],
        elements=_list(10, _either("image", _object(["alt_text"], type={}, **_IMAGE), _text(3000))),
    ),
    "image": _block(["alt_text"], title=_text(2000, "plain_text"), **_IMAGE),
    "markdown": _block(["text"], text=_string(12_000)),
    "actions": _block(["elements"], elements=_list(25, _either("button", _BUTTON, _ELEMENT))),
    "context_actions": _block(["elements"], elements=_list(5, _ELEMENT)),
    "rich_text": _block(["elements"], elements=_list(1000, _ELEMENT)),
    "file": {"required": ["external_id", "source"]},
    "table": {"required": ["rows"]},
    "video": {"required": ["alt_text", "title", "thumbnail_url", "video_url"]},
}
_IN_MODALS: dict[str, Schema] = {
    **_BLOCKS,
    "input": _block(
        ["label", "element"],
        label=_text(2000, "plain_text"),
        hint=_text(2000, "plain_text"),
        element=_INPUT,
        optional={"type": "boolean"},
    ),
}
_VALIDATORS = {name: Draft202012Validator(schema) for name, schema in _IN_MODALS.items()}
_MODAL = Draft202012Validator(
    _object(
        ["type", "title", "blocks"],
        type={"const": "modal"},
        callback_id=_string(255),
        private_metadata={"type": "string", "maxLength": 3000},
        title=_text(24, "plain_text"),
        submit=_text(24, "plain_text"),
        close=_text(24, "plain_text"),
        blocks={"type": "array"},
    )
)


def problems_of_modal(view: Any) -> list[str]:
    """What Slack has against this view of a modal; nothing where it is right."""
    found = [told for error in _MODAL.iter_errors(view) for told in _in_slacks_words(error)]
    return found or problems(view["blocks"], _IN_MODALS)


def problems(blocks: Any, known: Collection[str] = _BLOCKS) -> list[str]:
    """What Slack has against these blocks; nothing where they are right.

    `known` are the types that there are where the blocks are to be shown.
    """
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return ["must provide an array of objects [json-pointer:/blocks]"]
    found = [told for index, block in enumerate(blocks) for told in _of_block(index, block, known)]
    if len(blocks) > _MOST_BLOCKS:
        found.append(f"no more than {_MOST_BLOCKS} items allowed [json-pointer:/blocks]")
    ids = Counter(block["block_id"] for block in blocks if block.get("block_id"))
    twice = [id_ for id_, times in ids.items() if times > 1]
    return found + [f"block_id {id_} already exists [json-pointer:/blocks]" for id_ in twice]


def _of_block(index: int, block: Schema, known: Collection[str]) -> Iterator[str]:
    kind = block.get("type")
    if kind is None:
        yield f"missing required field: type [json-pointer:/blocks/{index}]"
    elif kind not in known:
        yield f"unsupported type: {kind} [json-pointer:/blocks/{index}/type]"
    else:
        for error in _VALIDATORS[kind].iter_errors(block):
            place = "/".join(map(str, ["", "blocks", index, *error.absolute_path]))
            yield from (f"{told} [json-pointer:{place}]" for told in _in_slacks_words(error))


def _in_slacks_words(error: ValidationError) -> list[str]:
    rule, limit, instance, schema = _parts(error)
    if rule == "required":
        return [f"missing required field: {name}" for name in limit if name not in instance]
    if rule == "additionalProperties":
        known = schema["properties"]
        return [f"invalid additional property: {name}" for name in instance if name not in known]
    words = {
        "maxLength": lambda: f"must be less than {limit + 1} characters",
        "minLength": lambda: f"must be more than {limit - 1} characters",
        "maxItems": lambda: f"no more than {limit} items allowed",
        "minItems": lambda: f"no fewer than {limit} items allowed",
        "anyOf": lambda: "must define either `text` or `fields`",
    }
    return [words.get(rule, lambda: f"must be {rule} {limit}")()]


def _parts(error: ValidationError) -> tuple[str, Any, Any, Any]:
    return str(error.validator), error.validator_value, error.instance, error.schema
