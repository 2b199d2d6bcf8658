"""Errors as OpenAI's clients read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONGEST = 1000  # characters of a message: it may repeat the name of a field
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """A response with an error status.

    Attributes:
        status: the status of the response.
        code: a word for programs.
        param: the field of the request that is wrong.
        grv: what the search found and cost, if there was one.
        retry_after: seconds after which the same request may succeed; None if it would fail again.
        close: whether the connection is closed, because the rest of the request is not read.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        grv: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(message[:_LONGEST])
        self.status = status
        self.code = code
        self.grv = grv
        self.param = None if param is None else param[:_LONGEST]
        self.retry_after = retry_after
        self.close = close

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of the response."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {
            "message": str(self),
            "type": _TYPES.get(self.status, kind),
            "param": self.param,
            "code": self.code,
        }
        return {"error": error if self.grv is None else {**error, "grv": dict(self.grv)}}

    @property
    def headers(self) -> dict[str, str]:
        """The headers that say whether to try again; OpenAI's clients read both."""
        found = {"x-should-retry": "false" if self.retry_after is None else "true"}
        if self.retry_after is not None:
            found["retry-after"] = f"{max(1, round(self.retry_after))}"
        if self.status == 401:
            found["www-authenticate"] = "Bearer"
        return found | ({"connection": "close"} if self.close else {})


def wrong(param: str, problem: str) -> ApiError:
    """The error for a field of a request that is wrong."""
    return ApiError(400, f"{param}: {problem}", code="invalid_value", param=param)
