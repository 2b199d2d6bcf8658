"""Rows of verl, DAPO and Eurus: Parquet with a chat and a rule that judges the answer.

`data_source, prompt[{role, content}], ability, reward_model{style, ground_truth}, extra_info`. The
`data_source` says which rule verl applies; rules for answers in mathematics and for tests of
programs have a check of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import UsageError
from ...files import shown
from . import unit_tests
from .records import Converted, NotConverted, Record, Wanted, chat, chat_messages, kept, parsed

OWN = "grv"  # the source of rows whose ground truth is a check, as JSON text
_MATH = {
    "openai/gsm8k",
    "lighteval/MATH",
    "DigitalLearningGmbH/MATH-lighteval",
    "HuggingFaceH4/MATH-500",
    "math",
    "math_dapo",
    "math_dapo_reasoning",
    "hiyouga/geometry3k",
}
_MATH_BEGINNINGS = ("aime", "numina_")
_CODE = {"codecontests", "apps", "codeforces", "taco"}


def verl(record: Record, wanted: Wanted) -> Converted:
    """A row of verl's Parquet files."""
    source = record.text("data_source")
    messages = chat_messages(record.field("prompt", list | str), "prompt")
    if record.data.get("images") or record.data.get("videos"):
        raise NotConverted("pictures or videos in the prompt")
    reward = record.part("reward_model")
    style = reward.text("style", "rule")
    if style != "rule":
        raise NotConverted(f"judged by a reward model (style {style})")
    truth = reward.data.get("ground_truth")
    check = _check(source, record.text("ability", ""), truth, wanted)
    extra = record.part("extra_info")
    problem = chat(record, _name(record, source, extra), messages, wanted, check)
    answer = extra.data.get("answer")
    solutions = kept([answer]) if check["kind"] == "math" and source == "openai/gsm8k" else ()
    return Converted(problem, solutions=solutions)


def check_of(source: str, truth: Any) -> Mapping[str, Any]:
    """The check of a row, by its source and its ground truth; a UsageError if there is none."""
    try:
        return _check(source, "", truth, Wanted())
    except NotConverted as error:
        raise UsageError(f"a row cannot be verified: {error}") from None


def _name(record: Record, source: str, extra: Record) -> str:
    index = extra.data.get("index")
    if isinstance(index, bool) or not isinstance(index, int | str):
        return record.row
    if isinstance(index, str) and "-" in index:  # a UUID, as in DAPO
        return index
    parts = [source, extra.text("split", ""), str(index)]
    return "/".join(part for part in parts if part)


def _check(source: str, ability: str, truth: Any, wanted: Wanted) -> dict[str, Any]:
    if truth is None:
        raise UsageError("field reward_model.ground_truth is missing")
    if source == OWN:
        own = parsed(truth, "reward_model.ground_truth") if isinstance(truth, str) else truth
        if not isinstance(own, dict) or not isinstance(own.get("kind"), str):
            raise UsageError(f"field reward_model.ground_truth must be a check, not {shown(truth)}")
        return own
    tests = _tests(truth, source)
    if tests is not None:
        return unit_tests.check_of(tests, "reward_model.ground_truth", language=wanted.language)
    known = source in _MATH or source.startswith(_MATH_BEGINNINGS)
    if not known and not ability.lower().startswith("math"):
        raise NotConverted(f"data_source {source}: no check follows its rule")
    if isinstance(truth, list) and len(truth) == 1:
        (truth,) = truth
    if isinstance(truth, bool) or not isinstance(truth, str | int | float):
        raise UsageError(f"field reward_model.ground_truth must be an answer, not {shown(truth)}")
    if not str(truth).strip():
        raise NotConverted("no answer")
    return {"kind": "math", "answer": str(truth), "match": wanted.match}


def _tests(truth: Any, source: str) -> Any:
    """The tests in a ground truth; None if it is something else."""
    if isinstance(truth, str) and (source in _CODE or truth.lstrip()[:2] in ('{"', "[{")):
        try:
            truth = parsed(truth, "reward_model.ground_truth")
        except UsageError:
            if source in _CODE:
                raise
            return None
    match truth:
        case {"inputs": _} | {"outputs": _}:
            return truth
        case [{"input": _, "output": _}, *_]:
            return truth
        case {"functional": _}:
            raise NotConverted("tests are code (functional)")
    if source in _CODE:
        raise UsageError(
            f"field reward_model.ground_truth must have inputs and outputs, not {shown(truth)}"
        )
    return None
