"""The queue of alerts, in memory."""

from functions.model.messages.alert import Alert


class FakeAlerts:
    """The posted alerts that remain visible, each with its channel, as on_alert shows them.

    An alert posted again is kept once. An alert older than the latest one of its ingestion is
    dropped.
    """

    def __init__(self) -> None:
        self.posted: list[tuple[str, Alert]] = []

    def post(self, channel: str, alert: Alert) -> None:
        told = {(each, known.about) for each, known in self.posted if known.about}
        same = (a.revision for _, a in self.posted if a.ingestion == alert.ingestion)
        if (channel, alert.about) not in told and not 0 < alert.revision < max(same, default=0):
            self.posted.append((channel, alert))
