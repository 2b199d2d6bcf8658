"""All commands: where each is defined, and what it is for. A command is loaded when it is used."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Command:
    """A command of `grv`.

    Attributes:
        place: its module in `apps`, and the name of its function or group there.
        summary: what it is for, in the list of commands.
    """

    place: str
    summary: str

    def load(self) -> Any:
        """The function of the command, or its group of commands."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"..{module}", __package__), name)


COMMANDS: Mapping[str, Command] = {
    "demo": Command("demo:demo", "Watch a small language model solve a dozen problems."),
    "init": Command("init:init", "Write a first job file and two problems."),
    "solve": Command("solve:solve", "Find a verified answer to each problem, live."),
    "attempt": Command("attempt:attempt", "Have coding agents try a task until its tests pass."),
    "collect": Command("collect:collect", "Make a log of candidates, scores and verdicts, live."),
    "serve": Command("serve:serve", "Serve verified completions to every OpenAI client."),
    "mcp": Command("mcp:mcp", "Give agents verdicts and verified answers, as tools of MCP."),
    "dashboard": Command("dashboard:dashboard", "Watch a ledger in a browser."),
    "review": Command("review:review", "Give verdicts on candidates that wait for a person."),
    "runs": Command("runs:runs", "Read a ledger of live runs."),
    "problems": Command("problems:problems", "Make a file of problems from a published dataset."),
    "compare": Command("compare:compare", "Compare what policies would have cost on a log."),
    "report": Command("report:report", "A page that says what policies cost and what to do."),
    "learn": Command("learn:learn", "Learn a prior from logs: when verifying pays."),
    "oracle": Command("oracle:oracle", "Print the lowest possible cost of each problem."),
    "simulate": Command("simulate:simulate", "Try policies on problems whose laws are known."),
    "shells": Command("shells:shells", "Print the cost shells of the adaptive policy."),
    "star": Command("star:star", "Compute the star number of a class of concepts."),
    "theory": Command("theory:theory", "Measure the bounds of the learning theory."),
    "convert": Command("convert:convert", "Join labels and scores from files into one log."),
    "verify": Command("verify:verify", "Give every candidate of a file its verdict."),
    "calibrate": Command("calibrate:calibrate", "Measure how often a check errs."),
    "doctor": Command("doctor:doctor", "Try the sandbox: attacks must fail."),
    "schema": Command("schema:schema", "Print the JSON Schema of job files and others."),
    "completion": Command("completion:completion", "Print a script that completes commands."),
}

# Those that search, and so have spans.
TRACED = frozenset({"attempt", "collect", "mcp", "serve", "solve"})

# How `grv --help` lists them.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Start here": ("demo", "init", "solve", "compare", "doctor"),
    "Run": ("attempt", "serve", "mcp", "collect", "verify", "calibrate", "problems"),
    "Look": ("dashboard", "review", "runs", "report"),
    "Study": ("convert", "learn", "oracle", "simulate", "shells", "star", "theory"),
    "Set up": ("schema", "completion"),
}
