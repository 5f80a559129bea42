"""The queue of announcements, in memory."""

from functions.model.announcement import Announcement


class FakeAnnouncements:
    """Every sent announcement in its order, repetitions included."""

    def __init__(self) -> None:
        self.sent: list[Announcement] = []

    def send(self, announcement: "Announcement") -> None:
        """See AnnouncementQueue.send."""
        self.sent.append(Announcement.read(announcement.text()))
