"""Responses of the pages, and the headers that protect them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

# Only our own files: no script or style inside a page, no other address, no frame around it.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def as_json(data: Any) -> bytes:
    """JSON in ASCII: texts may contain what UTF-8 cannot express, and numbers what JSON cannot."""
    try:
        return json.dumps(data, allow_nan=False, default=repr).encode("ascii")
    except ValueError:
        return json.dumps(_finite(data), default=repr).encode("ascii")


def _finite(data: Any) -> Any:
    """The data with texts in place of numbers that are not finite."""
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    return [_finite(each) for each in data] if isinstance(data, list | tuple) else data


def json_response(data: Mapping[str, Any]) -> Response:
    """A response with JSON."""
    return Response(as_json(data), media_type="application/json", headers=HEADERS)
