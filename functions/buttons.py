"""What people can do at an alert, as Slack shows it: the buttons below it."""

from functions.blocks import Block
from functions.messages import Alert


def buttons(alert: Alert) -> tuple[Block, ...]:
    """The blocks with an alert's buttons; none where there is nothing to do."""
    return ()
