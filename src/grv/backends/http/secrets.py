"""Keys, and the secret parts of addresses: what counts as one, and where it must not appear.

A server may repeat a request. In messages (errors, logs, evidence), `Secrets.hide` replaces any
eight consecutive characters of a secret: plain, percent-encoded, with the escapes of JSON, HTML or
Python, in base64, in hexadecimal, and in combinations of these. The text of a candidate is never
changed: a candidate that contains a whole key is dropped instead, see `Secrets.has_key`.

Servers that need no key are given placeholders such as EMPTY, which are words that occur in
programs: they are not secret. `is_key` says what is a real key. In messages, shorter keys are
hidden too, from eight characters on: there a word too many does no harm.
"""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

HIDDEN = "***"
SHORTEST_KEY = 16  # characters; a shorter text may occur in an answer by chance
KEYS = (  # the variables that grv reads
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "REWARD_API_KEY",
    "VERIFIER_API_KEY",
)
# Placeholders in manuals consist of these words: sk-no-key-required, YOUR_API_KEY_HERE, sk-xxxx.
_PLACEHOLDER = re.compile(
    r"(?:not[\W_]*a[\W_]*real|unnecessary|placeholder|whatever|anything|required|provided|anthropic"
    r"|1234567890|ignored?|example|replace|default|missing|without|openai|ollama|needed"
    r"|unused|server|studio|insert|please|change|sample|dummy|empty|llama|local|model|paste"
    r"|token|vllm|auth|fake|goes|here|keys?|need|none|null|proj|test|this|used|your|any|api|cpp"
    r"|for|not|with|1234(?:5(?:67?)?)?|hf|in|it|lm|me|my|no|on|sk|to|is|[0x*.\W_])+",
    re.IGNORECASE,
)
_NAMES_SECRET = re.compile(
    r"(key|secret|password|authorization|credentials?|cookie)$"
    r"|(^|access|api|auth|bearer|refresh|session|x)[_-]?token$"  # but not stop_token
    r"|^(code|sig|signature)$",
    re.IGNORECASE,
)
_PIECE = 8  # consecutive characters of a secret that are hidden
_SHORTEST = 4  # a shorter value in a query is not secret: version=2
_ROUNDS = 3  # of nested encodings
_Data = TypeVar("_Data")

_MARK = re.compile(r"[%\\&]")  # what every encoded piece begins with
_ENCODED = re.compile(
    r"(?P<percent>(?:%(?:25)*[0-9a-f]{2})+)"
    r"|(?P<unicode>(?:\\+u[0-9a-f]{4})+)"
    r"|\\+x(?P<hex>[0-9a-f]{2})"
    r"|(?P<html>&(?:\#\d{1,7}|\#x[0-9a-f]{1,6}|amp|lt|gt|quot|apos);)"
    r"|\\+(?P<escaped>[\"'/\\])",
    re.IGNORECASE,
)


def is_key(text: str, shortest: int = SHORTEST_KEY) -> bool:
    """Whether a text is a real key: not too short, and no placeholder of a manual.

    >>> is_key("sk-proj-0123456789abcdef"), is_key("12345678"), is_key("sk-no-key-required")
    (True, False, False)
    """
    key = text.strip()
    distinct = len(set(key))
    return len(key) >= shortest and distinct > 2 and _PLACEHOLDER.fullmatch(key) is None


def names_secret(name: str) -> bool:
    """Whether the value of a field, a header or a parameter with this name is secret."""
    return _NAMES_SECRET.search(name.strip()) is not None


def key_in(variable: str) -> str | None:
    """The key in an environment variable, without the white space around it; None without one."""
    return os.environ.get(variable, "").strip() or None


def keys_of_headers(headers: Mapping[str, str]) -> list[str]:
    """The keys in headers: whole values, and what follows a scheme such as Bearer or Basic."""
    found: list[str] = []
    for value in (value for name, value in headers.items() if names_secret(name)):
        found.append(value)
        scheme, _, rest = value.partition(" ")
        found.append(rest)
        if scheme.lower() == "basic":
            try:
                plain = base64.b64decode(rest).decode()
            except ValueError:
                continue
            found += [plain, plain.partition(":")[2]]
    return found


class Secrets:
    """Texts that are replaced by *** in messages, and keys that no candidate may contain.

    Args:
        texts: what to hide.
        keys: real keys, which are hidden too.

    >>> Secrets.of("http://host/v1", "sk-proj-12345678").hide("the key sk-proj-12345678 is wrong")
    'the key *** is wrong'
    """

    def __init__(self, texts: Iterable[str] = (), keys: Iterable[str] = ()) -> None:
        real = list(keys)
        self._keys = sorted({form for key in real for form in _forms(key)})
        texts = [*texts, *real]
        both = [each for text in texts for each in (text, _decoded(text)[0])]
        forms = {form for text in both for form in _forms(text)}
        self._whole = sorted({form for form in forms if 0 < len(form) < _PIECE})
        self._pieces = {
            form[at : at + _PIECE] for form in forms for at in range(len(form) - _PIECE + 1)
        }
        self._shortest = min(map(len, forms), default=1 << 30)
        # Pieces are looked for only where enough of their characters are in a row.
        characters = "".join(map(re.escape, sorted(set("".join(self._pieces)))))
        self._runs = re.compile(f"[{characters}]{{{_PIECE},}}" if characters else r"(?!)")

    @classmethod
    def of(cls, url: str | None, *keys: str | None) -> Secrets:
        """The secret parts of an address, and keys."""
        address = "" if url is None else url
        given = [key.strip() for key in (*keys, *_keys_of(address)) if key]
        short = [key for key in given if is_key(key, _PIECE)]
        return cls([*secrets_of(address), *short], filter(is_key, given))

    def has_key(self, text: str) -> bool:
        """Whether a whole key is in the text, in any of the encodings."""
        if not self._keys:
            return False
        return any(key in form for form in {text, _decoded(text)[0]} for key in self._keys)

    def hide(self, text: str) -> str:
        """The text without secrets."""
        if len(text) < self._shortest:
            return text
        decoded, places = _decoded(text)
        spans = list(self._found(text))  # also as it is: what is before may look like an escape
        if places:
            spans += [(places[start], places[end]) for start, end in self._found(decoded)]
        kept = []
        at = 0
        for first, last in _joined(sorted(spans)):
            if last <= at:
                continue
            kept += [text[at : max(at, first)], HIDDEN]
            at = last
        return "".join([*kept, text[at:]])

    def hide_all(self, data: _Data) -> _Data:
        """JSON data without secrets; only texts are changed."""
        if not (self._pieces or self._whole):
            return data
        # Looking is faster than copying, and there is hardly ever a secret.
        there = any(map(self.is_in, _texts(data, self._shortest)))
        return self.copied(data) if there else data

    def copied(self, data: Any) -> Any:
        """A copy of JSON data without secrets."""
        if isinstance(data, str):
            return self.hide(data)
        if isinstance(data, dict):
            return {self.hide(name): self.copied(value) for name, value in data.items()}
        if isinstance(data, list):
            return [self.copied(value) for value in data]
        return data

    def is_in(self, text: str) -> bool:
        """Whether a secret is in the text."""
        return self.hide(text) != text

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of pieces of secrets, sorted."""
        spans = [
            (at, at + _PIECE)
            for run in self._runs.finditer(text)
            for at in range(run.start(), run.end() - _PIECE + 1)
            if text[at : at + _PIECE] in self._pieces
        ]
        for form in self._whole:
            spans += [(match.start(), match.end()) for match in re.finditer(re.escape(form), text)]
        yield from sorted(spans)


def _texts(data: object, shortest: int) -> set[str]:
    """The texts and names in JSON data that have at least this many characters."""
    found: set[str] = set()
    level: list[Any] = [[data]]
    while level:
        inner = []
        for each in level:
            if type(each) is dict:
                found.update(name for name in each if len(name) >= shortest)
            for value in each.values() if type(each) is dict else each:
                kind = type(value)
                if kind is dict or kind is list:
                    inner.append(value)
                elif kind is str and len(value) >= shortest:
                    found.add(value)
        level = inner
    return found


def _keys_of(url: str) -> list[str]:
    """The parts of an address that may be keys: the password, and parameters that are secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    user = unquote(parts.netloc.rpartition("@")[0])
    password = user.partition(":")[2]
    values = [value for name, value in parse_qsl(parts.query) if names_secret(name)]
    return [password, *values]


def secrets_of(url: str) -> list[str]:
    """The secret parts of an address: user, password, query, fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    user = parts.netloc.rpartition("@")[0]
    values = [value for _, value in parse_qsl(parts.query)]
    values += [*parts.query.split("&"), parts.query, parts.fragment]
    found = [value for value in values if len(value) >= _SHORTEST]
    found += [user, unquote(user)] if ":" in user or len(user) >= _SHORTEST else []
    name, _, password = unquote(user).partition(":")
    found += [name] if len(name) >= _SHORTEST else []
    found += [password] if len(password) >= _SHORTEST - 1 else []
    return found


def _forms(text: str) -> Iterator[str]:
    """The text, its forms in base64 at each of the three offsets, and in hexadecimal."""
    yield text
    yield text.replace(" ", "+")
    content = text.encode("utf-8", "surrogatepass")
    if len(content) < _SHORTEST:
        return
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + content).decode()
        # Leave out the characters that depend on neighbouring bytes.
        first = -(-before * 8 // 6)
        last = (before + len(content)) * 8 // 6
        core = encoded[first:last]
        yield core
        yield core.replace("+", "-").replace("/", "_")
    yield content.hex()
    yield content.hex().upper()


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans, with those that overlap or touch merged."""
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current is not None and start <= current[1]:
            current = current[0], max(current[1], end)
            continue
        if current is not None:
            yield current
        current = start, end
    if current is not None:
        yield current


def _decoded(text: str) -> tuple[str, list[int]]:
    """The decoded text, and the original position of each character and of the end.

    The positions are empty if nothing was encoded.
    """
    places: list[int] = []
    for _ in range(_ROUNDS):
        parts = []
        inner = list[int]()
        at = 0
        for mark in _MARK.finditer(text):  # faster than to try `_ENCODED` everywhere
            match = _ENCODED.match(text, mark.start()) if mark.start() >= at else None
            if match is None:
                continue
            meant = _meant(match)
            parts += [text[at : match.start()], meant]
            inner += [*range(at, match.start()), *[match.start()] * len(meant)]
            at = match.end()
        if not parts:
            break
        inner += range(at, len(text) + 1)
        places = [places[each] for each in inner] if places else inner
        text = "".join([*parts, text[at:]])
    return text, places


def _meant(match: re.Match[str]) -> str:
    """The decoded form of a match of `_ENCODED`."""
    piece = match.group()
    match match.lastgroup:
        case "percent":
            digits = re.findall(r"%(?:25)*([0-9a-f]{2})", piece, re.IGNORECASE)
            return bytes(int(pair, 16) for pair in digits).decode("utf-8", "replace")
        case "unicode":
            units = re.findall(r"u([0-9a-f]{4})", piece, re.IGNORECASE)
            code = b"".join(int(unit, 16).to_bytes(2, "big") for unit in units)
            return code.decode("utf-16-be", "replace")
        case "hex":
            return chr(int(match["hex"], 16))
        case "html":
            return html.unescape(piece)
        case _:
            return match["escaped"]
