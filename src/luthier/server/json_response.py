"""Responses in JSON."""

from fastapi.responses import JSONResponse

from luthier.result.serial import json_text


class SafeJsonResponse(JSONResponse):
    """A JSON response that is always valid: no NaN, no lone surrogates."""

    def render(self, content: object) -> bytes:
        """The bytes to send."""
        return json_text(content).encode("utf-8")
