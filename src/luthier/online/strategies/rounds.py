"""Rounds of reports: a strategy that plans for all clients at once plans when each of them has reported."""


class Rounds:
    """Recognises when all clients have reported, from the reports alone: the number of clients is not given.

    That a client reports a second time shows that all others have had their turn. So the size of a round is known from
    the second one on; it follows clients that join or leave.
    """

    def __init__(self) -> None:
        self.clients: int | None = None
        """How many clients a round has; None in the first round."""

        self._reported: set[str] = set()

    @property
    def reported(self) -> int:
        """How many clients have reported in the present round."""
        return len(self._reported)

    def end_first(self, clients: int) -> None:
        """End the first round without having seen a client twice; from now on this many reports are a round."""
        self.clients = clients
        self._reported.clear()

    def add(self, client: str) -> bool:
        """Count a report; True if the round is over."""
        # Only a round of unknown or wrong size comes here: it is over, and this report belongs to the next one.
        if client in self._reported:
            self.clients = len(self._reported)
            self._reported.clear()
        self._reported.add(client)
        if self.clients is None or len(self._reported) < self.clients:
            return False
        self._reported.clear()
        return True
