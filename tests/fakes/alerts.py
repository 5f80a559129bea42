"""Slack in memory."""

from functions.messages import Alert
from lakegate.errors import Permanent


class FakeAlerts:
    """Keeps what was posted, by channel; `closed` channels refuse."""

    def __init__(self, default_channel: str = "#lakegate") -> None:
        self._default = default_channel
        self.posted: list[tuple[str, Alert]] = []
        self.closed: set[str] = set()

    def post(self, channel: str, alert: Alert) -> None:
        """See Alerts.post."""
        shown_in = channel or self._default
        if shown_in in self.closed:
            raise Permanent("SLACK_REFUSED", "Slack refused the alert: channel_not_found")
        self.posted.append((shown_in, alert))
