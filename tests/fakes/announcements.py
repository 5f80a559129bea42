"""The queue of announcements, in memory."""

from functions.model.announcement import Announcement, Refresh


class FakeAnnouncements:
    """Every sent announcement in its order, repetitions included."""

    def __init__(self) -> None:
        self.sent: list[Announcement] = []
        self.refreshes: list[Refresh] = []

    def send(self, announcement: "Announcement | Refresh") -> None:
        """See AnnouncementQueue.send."""
        if isinstance(announcement, Refresh):
            self.refreshes.append(Refresh.read(announcement.text()))
        else:
            self.sent.append(Announcement.read(announcement.text()))
