"""The options of `grv attempt`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...backends.generators.command import SECONDS
from ...backends.verifiers.options import Verification
from ...options import Family, option
from ...parsing import parse_budget
from ...policies import POLICIES


@dataclass(frozen=True, kw_only=True)
class AttemptOptions(Family):
    """The options of `grv attempt`."""

    task: str = option(
        ..., "A file that says what to do, for the agent.", argument=True, metavar="TASK"
    )
    verify: str = option(
        ...,
        "The command that decides, as in 'pytest -q'. It is split into words; no shell runs it. It"
        " runs in the jail, in a fresh copy with the attempt's diff.",
        metavar="COMMAND",
    )
    agent: tuple[str, ...] = option(
        ...,
        "What makes an attempt: claude, codex, mini, openhands, aider, gemini, one of them with a"
        " model, as in claude:haiku, or a command of your own, as in './agent.sh --fast' or"
        " fast='./agent.sh --fast', with a name for it. It runs with your rights."
        " Repeatable: several agents share the money, and the cheap ones start.",
        metavar="AGENT",
    )
    repository: str = option(
        ".", "A folder of the repository.", "--repository", "-C", metavar="FOLDER"
    )
    commit: str | None = option(
        None,
        "The commit that attempts start from. Changes that are not committed are not part of it.",
        metavar="NAME",
        shown="HEAD, if nothing has changed since",
    )
    protect: tuple[str, ...] = option(
        (),
        "A file or folder that attempts may not change, besides tests and their configuration: a"
        " diff that touches it fails. Repeatable.",
        metavar="PATH",
    )
    readable: tuple[str, ...] = option(
        (),
        "A folder that the tests may read besides the system's own, such as the project's virtual"
        " environment. Repeatable.",
        metavar="FOLDER",
    )
    verify_timeout: float = option(
        600.0, "Seconds that the command may take.", metavar="S", least=1e-3, most=1e8
    )
    image: str | None = option(
        None, "Run the tests in a container of this image; see --isolation.", metavar="IMAGE"
    )
    agent_image: str | None = option(
        None,
        "Run the agents in containers of this image, with podman or docker: they see their copy of"
        " the repository, the network, and the variables of --agent-env.",
        metavar="IMAGE",
    )
    agent_env: tuple[str, ...] = option(
        (),
        "A variable that agents in containers may see, such as ANTHROPIC_API_KEY. Repeatable.",
        metavar="NAME",
    )
    budget: float = option(
        math.inf,
        "The most that all attempts may cost, in dollars, as in 5usd.",
        metavar="USD",
        parse=parse_budget,
        essential=True,
    )
    most: float | None = option(
        None,
        "The most that one attempt may cost, in dollars. An attempt starts only if that much is"
        " left. Agents that take a limit get it; others are only counted.",
        metavar="USD",
        parse=parse_budget,
        shown="a fifth of the budget",
    )
    deadline: float = option(
        math.inf, "Seconds after which the search ends.", metavar="S", least=1e-9
    )
    attempts: int | None = option(
        None, "The most attempts.", metavar="N", least=1, most=100_000, shown="no limit"
    )
    attempt_timeout: float = option(
        SECONDS,
        "Seconds after which an attempt is ended; it has no candidate then.",
        metavar="S",
        least=1e-3,
        most=1e8,
    )
    price: tuple[str, ...] = option(
        (),
        "What an attempt of an agent costs, as a first guess in dollars: claude:haiku=0.05. Without"
        " it, the attempts in the ledger say it, or else it is 0.5. Repeatable.",
        metavar="AGENT=USD",
    )
    prices: str | None = option(
        None,
        "A TOML file with prices in dollars, per token, second or call, for agents that do not say"
        " what they cost.",
        metavar="FILE",
    )
    policy: str = option(
        "learning",
        f"Decides when to verify: {', '.join(POLICIES)}, or FILE.py:CLASS of your own. If attempts"
        " cost more than their tests, most of them verify each attempt as it arrives.",
        metavar="SPEC",
        code=True,
    )
    score: str = option(
        "claim",
        "What ranks attempts that are not verified yet, as in grv solve --score: claim, length,"
        " diff-size, judge:MODEL, trained:LEDGER and others.",
        metavar="SPEC",
        code=True,
    )
    score_url: str | None = option(None, "The address of a judge's server.", metavar="URL")
    people: bool = option(
        False,
        "Ask a person before an attempt is accepted, after its tests have passed: grv review"
        " LEDGER.",
        "--people",
    )
    apply: bool = option(
        False,
        "Apply the accepted diff to the working tree. Without it, the diff is left as a branch.",
        "--apply",
        essential=True,
    )
    keep: bool = option(False, "Keep the folders of the attempts, and print them.", "--keep")
    ledger: str | None = option(
        None,
        "Where grv records what is paid for: a file, or postgresql://USER@HOST/DATABASE.",
        metavar="LEDGER",
        shown="grv/attempts.ledger in the folder .git",
    )
    out: str | None = option(None, "A file for the result, as JSON.", "--out", "-o", metavar="FILE")
    verification: Verification = field(default_factory=Verification)
