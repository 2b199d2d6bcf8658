"""All dialects of the server. This table is the only list."""

from __future__ import annotations

from .chat_dialect import CHAT, TEXT
from .messages_dialect import MESSAGES
from .responses_dialect import RESPONSES

DIALECTS = (CHAT, TEXT, RESPONSES, MESSAGES)
