"""The queue of announcements, in memory."""

from collections.abc import Iterable

from functions.model.messages.announcement import Announcement
from functions.model.messages.refresh import Refresh


class FakeAnnouncements:
    """Every sent announcement in its order, repetitions included."""

    def __init__(self) -> None:
        self.sent: list[Announcement] = []
        self.refreshes: list[Refresh] = []

    def send(self, announcements: "Iterable[Announcement | Refresh]") -> None:
        for each in announcements:
            if isinstance(each, Refresh):
                self.refreshes.append(Refresh.read(each.text()))
            else:
                self.sent.append(Announcement.read(each.text()))
