"""The forms in which a server may repeat a secret."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "percent": lambda text: quote(text, safe=""),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "percent, some": lambda text: "".join(
        c if at % 3 else "".join(f"%{b:02x}" for b in c.encode()) for at, c in enumerate(text)
    ),
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1],
    "json twice": lambda text: json.dumps(json.dumps(text))[1:-1],
    "json with slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "unicode escapes": lambda text: "".join(f"\\u{ord(c):04X}" for c in text),
    "python": repr,
    "html": html.escape,
    "html numbers": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 inside": lambda text: base64.b64encode(f"Bearer {text}...".encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(f"x{text}".encode()).decode(),
    "base64 in percent": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
    "hexadecimal": lambda text: text.encode().hex(),
    "cut short": lambda text: text[: max(8, len(text) // 2)],
    "its end": lambda text: text[-max(8, len(text) // 2) :],
}
