"""Rows of NeMo Gym: a request, and the fields that a resources server verifies with.

Which server a row is for shows in its fields. Rows for a judge model, for tools and for games have
no check of ours.
"""

from __future__ import annotations

import re
from typing import Any

from ...core.errors import UsageError
from ...files import shown
from . import lean, unit_tests
from .queries import asked, database_of, definitions, fenced
from .records import Converted, NotConverted, Record, Wanted, chat, chat_messages, parsed

_NAMES = ("uuid", "id", "hash_id", "problem_id", "instance_id", "task_id", "name")
_LETTER = re.compile(r"[A-Z]")
_JUDGED = ("rubric", "verifier", "instruction_id_list", "instructions", "llm_judge", "judge")
_TRANSACTION = re.compile(
    r"^[ \t]*(?:BEGIN(?: TRANSACTION)?|COMMIT|END)[ \t]*;", re.MULTILINE | re.I
)


def nemo_gym(record: Record, wanted: Wanted) -> Converted:
    """A row of NeMo Gym's JSON lines."""
    request = record.part("responses_create_params")
    if not request.data:
        raise UsageError("field responses_create_params is missing")
    name = record.name(*_NAMES)
    if name.isdecimal():
        name = f"{record.source}/{name}"
    if "gt_sql" in record.data or "gold_sql" in record.data or "sql" in record.data:
        return _query(record, wanted, name)
    if request.data.get("tools"):
        raise NotConverted("the answer needs tools")
    messages = chat_messages(request.data.get("input"), "responses_create_params.input")
    if isinstance(instructions := request.data.get("instructions"), str) and instructions:
        messages.insert(0, {"role": "system", "content": instructions})
    for message in messages:
        if message["role"] == "developer":
            message["role"] = "system"
    check = _check(record, wanted)
    return Converted(chat(record, name, messages, wanted, check), _difficulty(record))


def _difficulty(record: Record) -> str | None:
    value = record.data.get("difficulty")
    return value if isinstance(value, str) and value else None


def _check(record: Record, wanted: Wanted) -> dict[str, Any]:
    data = record.data
    if lean.is_theorem(data):
        return lean.check_of(record)
    metadata = record.part("verifier_metadata").data
    if "unit_tests" in metadata:
        tests = metadata["unit_tests"]
        if isinstance(tests, str):
            tests = parsed(tests, "verifier_metadata.unit_tests")
        return unit_tests.check_of(tests, "verifier_metadata.unit_tests", language=wanted.language)
    if "schema_str" in data:
        return _schema(record)
    for name in _JUDGED:
        if name in data:
            raise NotConverted(f"verified by a rule of its own ({name})")
    if "expected_answer" in data:
        return _answer(record, wanted)
    there = ", ".join(sorted(map(str, data.keys() - {"responses_create_params", "agent_ref"})))
    raise NotConverted(f"no check for the fields {there[:100] or '(none)'}")


def _schema(record: Record) -> dict[str, Any]:
    kind = record.text("schema_type", "json")
    if kind != "json":
        raise NotConverted(f"schema_type {kind}")
    mode = record.text("response_mode", "")
    if mode and mode != "text":
        raise NotConverted(f"response_mode {mode}")
    schema = record.parsed("schema_str")
    if not isinstance(schema, dict | bool):
        raise UsageError(f"field schema_str must be a JSON schema, not {shown(schema)}")
    return {"kind": "schema", "schema": schema}


def _answer(record: Record, wanted: Wanted) -> dict[str, Any]:
    answer = record.data["expected_answer"]
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        raise NotConverted("an expected_answer that is not one answer")
    text = str(answer).strip()
    if not text:
        raise NotConverted("no answer")
    if record.data.get("options") and _LETTER.fullmatch(text):
        return {"kind": "math", "answer": text, "match": "exact"}  # a letter in a box
    match record.data.get("agent_ref"):
        case {"name": str(agent)} if "math" not in agent and "mcq" not in agent:
            raise NotConverted(f"expected_answer for {agent}")
    if "extraction_mode" in record.data or not _is_mathematics(text):
        raise NotConverted("an expected_answer in words")
    return {"kind": "math", "answer": text, "match": wanted.match}


def _is_mathematics(text: str) -> bool:
    """Whether an answer is a number or a formula. Words go to a judge in NeMo Gym."""
    words = re.findall(
        r"(?<![\\A-Za-z])[A-Za-z]{3,}", re.sub(r"\\[A-Za-z]+(?:\{[^{}]*\})?", "", text)
    )
    return not words


def _query(record: Record, wanted: Wanted, name: str) -> Converted:
    """A question about a database: in a file, or as the statements that make it."""
    dialect = record.text("sql_dialect", "sqlite")
    if dialect != "sqlite":
        raise NotConverted(f"SQL of {dialect}")
    reference = next(
        (record.text(each) for each in ("gt_sql", "gold_sql", "sql") if each in record.data), ""
    )
    question = record.text("question", "") or record.text("sql_prompt", "")
    check: dict[str, Any] = {"kind": "sql", "engine": "sqlite", "reference": reference}
    context = record.text("sql_context", "")
    if wanted.databases is not None:
        database = database_of(record, record.text("db_id"), wanted)
        check["databases"] = [database]
        code = definitions(database)
    elif context.strip():
        code = _TRANSACTION.sub("", context).strip()
        check["schema"] = code
    else:
        raise UsageError("field sql_context is missing: give --databases FOLDER")
    problem = asked(name, question, code, check, wanted, record)
    return Converted(problem, _difficulty(record), (fenced(reference),))
