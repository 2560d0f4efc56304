"""What stands between the page and the bridge: it changes, adds, refuses and cuts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Change = Callable[[dict[str, Any]], None]


class Between:
    """Stands between the page and the bridge."""

    def __init__(self, page: Any) -> None:
        self.change: Change = lambda _message: None
        self.socket: Any = None
        self.server: Any = None
        self.sent: list[dict[str, Any]] = []
        self.refused: dict[str, str] = {}
        """Types of frames that do not reach the bridge, and the reason with which each is refused."""
        self.opened = 0
        self.is_down = False
        self._number = 0
        page.route_web_socket(re.compile("/ws"), self._open)

    def _open(self, socket: Any) -> None:
        if self.is_down:
            socket.close(code=1001)
            return
        self.opened += 1
        self._number = 0
        self.socket = socket
        self.server = socket.connect_to_server()
        self.server.on_message(self._to_page)
        socket.on_message(self._to_server)

    def _to_page(self, text: Any) -> None:
        message = json.loads(text)
        self.change(message)
        self.socket.send(json.dumps(message))

    def _to_server(self, text: Any) -> None:
        frame = json.loads(text)
        self.sent.append(frame)
        reason = self.refused.get(frame["type"])
        if reason:
            self.say(type="error", re=frame["id"], reason=reason, message="refused by the test", metadata={})
            return
        self._number += 1  # the bridge counts what reaches it
        self.server.send(json.dumps({**frame, "n": self._number}))

    def say(self, **message: Any) -> None:
        """Say something to the page."""
        self.socket.send(json.dumps(message))

    def cut(self) -> None:
        """Cut the connection."""
        self.socket.close(code=1001)
        self.server.close()

    def types(self) -> list[str]:
        """The types of the frames that the page has sent."""
        return [str(frame["type"]) for frame in self.sent]
