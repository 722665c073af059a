"""Answers in JSON."""

from fastapi.responses import JSONResponse

from luthier.analysis.plain import json_text


class Answer(JSONResponse):
    """JSON that is always valid, whatever was measured or printed."""

    def render(self, content: object) -> bytes:
        """The bytes to send."""
        return json_text(content).encode("utf-8")
