"""The queue of announcements, in memory."""

from functions.model.announcement import Announcement


class FakeAnnouncements:
    """Keeps what was sent, as often as it was, in its order."""

    def __init__(self) -> None:
        self.sent: list[Announcement] = []

    def send(self, announcement: Announcement) -> None:
        """See AnnouncementQueue.send."""
        self.sent.append(Announcement.read(announcement.text()))
