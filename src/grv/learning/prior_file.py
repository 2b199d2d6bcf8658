"""Reads priors from files, and policies whose specification names such a file."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .. import plugins
from ..core.errors import UsageError
from ..core.search import Policy
from ..files import parse_json, read_bytes, typed
from ..ledger.address import OperatorAddress
from ..own_code import Code, is_code, load, raised
from ..policies import POLICIES, Learning, spec
from ..policies.learned.prior import FORMAT, VERSION, Prior


def load_prior(path: str) -> Prior:
    """The prior in a file that `grv learn` wrote."""
    try:
        content = read_bytes(path)
    except UsageError as error:
        raise UsageError(f"{error}; make a prior with grv learn") from error
    return _parsed(path, content)


@lru_cache(maxsize=32)
def _parsed(path: str, content: bytes) -> Prior:
    return from_text(content.decode(errors="replace"), path)


def from_text(text: str, path: str = "prior") -> Prior:
    """The prior in the content of a file."""
    try:
        record = parse_json(text, finite=True)
    except ValueError as error:
        raise UsageError(f"{path}: not a prior: {error}; make one with grv learn") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise UsageError(f"{path}: not a prior; make one with grv learn")
    if record.get("version") != VERSION:
        raise UsageError(
            f"{path}: a prior of version {record.get('version')!r}, but this grv reads version"
            f" {VERSION}; make it again with grv learn"
        )
    try:
        return replace(typed(Prior, record), name=path)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{path}: a broken prior: {error}; make it again with grv learn"
        ) from error


def parse_policy(text: str) -> Policy:
    """The policy that the operator names; `learned('prior.json')` reads the file.

    The ledgers of a history are named by the operator, too. For guests, see `spec.parse_guest`.
    """
    if is_code(text):
        file, _, rest = text.strip().partition(":")
        return _made(text, load(f"{file}:{rest.partition('(')[0].strip()}"), rest)
    plugin = plugin_of(text)
    if plugin is not None:
        return _made(text, plugin, text)
    return operators(spec.parse(text, load=load_prior))


def plugin_of(text: str) -> Code | None:
    """The plugin that a specification of the operator names as a policy; None if it is none."""
    name = spec.split(text)[0]
    return None if name in (*POLICIES, "default") else plugins.load("policies", name)


def operators(policy: Policy) -> Policy:
    """A policy of the operator: the ledgers of its history are `OperatorAddress`."""
    if isinstance(policy, Learning):
        return replace(policy, history=tuple(map(OperatorAddress, policy.history)))
    return policy


def _made(text: str, code: Code, call: str) -> Policy:
    """The policy of a user's class, as in `Patient` or `Patient(batch=4)`; an object will do."""
    _, bracket, arguments = call.partition("(")
    made = code.value
    if isinstance(made, type) or bracket:
        _, positional, named = spec.split(f"f{bracket}{arguments}")
        try:
            made = made(*positional, **named)
        except Exception as error:
            raise UsageError(f"{text}: {raised(error)}") from error
    if not callable(getattr(made, "plan", None)):
        raise UsageError(
            f"{code.name} is no policy; expected a class with a method plan(self, pool, costs) that"
            " yields grv.Generate and grv.Verify"
        )
    policy: Policy = made
    return policy
