"""The queue of alerts, in memory."""

from functions.people.messages import Alert


class FakeAlerts:
    """Keeps what was posted, with its channel; what is posted again is there once."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, Alert]] = []

    def post(self, channel: str, alert: Alert) -> None:
        """See AlertQueue.post."""
        told = {(each, known.about) for each, known in self.posted if known.about}
        if (channel, alert.about) not in told:
            self.posted.append((channel, alert))
