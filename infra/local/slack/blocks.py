"""Check the blocks of messages and modals as Slack does, by slack_sdk's models.

slack_sdk knows the limits of the Block Kit reference. Three checks are ours: the number of blocks
in a message, that a header is plain text, and that slack_sdk's model leaves nothing out.
"""

from collections.abc import Callable
from typing import Any

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

_MOST_BLOCKS = 50
_ONLY_IN_MODALS = ("input",)


def problems(blocks: Any) -> list[str]:
    """Return why Slack refuses these blocks of a message, if it does."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return ["must provide an array of objects [json-pointer:/blocks]"]
    reasons = [] if len(blocks) <= _MOST_BLOCKS else [f"no more than {_MOST_BLOCKS} items allowed"]
    for index, block in enumerate(blocks):
        if problem := _problem_of_block(block):
            reasons.append(f"{problem} [json-pointer:/blocks/{index}]")
    return reasons


def problems_of_modal(view: Any) -> list[str]:
    """Return why Slack refuses this view of a modal, if it does."""
    if not isinstance(view, dict) or not {"title", "blocks"} <= view.keys():
        return ["missing required field: title or blocks"]
    problem = _problem(lambda given: View(**given), view)
    return [problem] if problem else []


def _problem_of_block(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind in _ONLY_IN_MODALS:
        return f"unsupported type: {kind}"
    text = block.get("text")
    if kind == "header" and isinstance(text, dict) and text.get("type") != "plain_text":
        return "the text of a header must be plain_text"
    return _problem(Block.parse, block)


def _problem(parse: Callable[..., Any], given: dict[str, Any]) -> str:
    """Return what slack_sdk's model refuses or leaves out, "" if nothing."""
    try:
        model = parse(given)
        known = model.to_dict() if model else {}
    except SlackObjectFormationError as error:
        return str(error)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return f"missing or wrong field: {error!r}"
    return "" if known == given else f"unknown, empty or wrong field: only {known} is understood"
