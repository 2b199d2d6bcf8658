"""Tries out the sandbox on this machine: right programs must pass, attacks must fail."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Callable, Iterable

from ...core.errors import installing
from ..sandbox.isolation.seccomp import NOT_YET_RUN
from ..sandbox.limits import CONTAINERS, Isolation
from ..verifiers.languages.toolchains import Toolchain, installed
from ..verifiers.pool import CheckVerifier
from ..verifiers.proofs import provers
from ..verifiers.repo import containers
from . import judging, repositories, suite


def examine(
    isolation: Isolation,
    workers: int | None,
    tell: Callable[[str], None],
    verbose: bool,
    image: str = "",
) -> bool:
    """Run right programs and attacks; whether all is well.

    Args:
        isolation: the isolation to examine.
        workers: programs that run at once; None is one per processor.
        tell: reports one line.
        verbose: whether to report each program.
        image: an image in which attacks by changes to repositories are tried too.

    Raises:
        UsageError: this machine lacks the isolation.
    """
    tell(f"Python {platform.python_version()} ({sys.executable})")
    tell(f"Linux {platform.release()}, {platform.machine()}")
    with CheckVerifier(workers=workers, isolation=isolation) as verifier:
        tell(f"isolation {verifier.in_force}")
        if verifier.in_force.seccomp in NOT_YET_RUN:
            tell("  this architecture's filter has never run on a real machine")
        for name, reason in verifier.in_force.missing.items():
            tell(f"  without {name}: {reason}")
        trials = suite.run_right_programs(verifier)
        right = _reported("right programs that pass", trials, tell, verbose)
    with (
        suite.Surroundings() as around,
        CheckVerifier(
            workers=workers, isolation=isolation, limits=suite.LIMITS, refute=False
        ) as verifier,
    ):
        trials = suite.run_attacks(verifier, around)
        held = _reported("attacks that are held", trials, tell, verbose)
        _tell_tools(tell)
        trials = suite.run_tool_attacks(verifier, around)
        name = "attacks by programs in other languages that are held"
        held = _reported(name, trials, tell, verbose) and held
        held = _try_repositories(verifier, around, tell, verbose, isolation, image) and held
        damage = around.damage()
        folders = verifier.folders()
        verifier.close()
        damage += [f"left behind: {thing}" for thing in suite.left_behind(folders)]
    for line in damage:
        tell(f"DAMAGE {line}")
    well = [judging.escapes(attack) for attack in judging.ATTACKS]
    for attack, reason in zip(judging.ATTACKS, well, strict=True):
        if verbose or reason:
            tell(f"  {'BAD ' if reason else 'ok  '}{attack.name} (judge): {reason or 'held'}")
    tell(f"{well.count('')} of {len(well)} attacks on judges that stay in their place")
    return right and held and not damage and not any(well)


def _try_repositories(
    verifier: CheckVerifier,
    around: suite.Surroundings,
    tell: Callable[[str], None],
    verbose: bool,
    isolation: Isolation,
    image: str,
) -> bool:
    """Try changes to a repository in the jail, and in a container if an image is given."""
    if problem := repositories.why_not():
        tell(f"  changes to repositories: not tried here: {problem}")
        return True
    trials = suite.run_repository_attacks(verifier, around)
    held = _reported("changes to a repository that are judged right", trials, tell, verbose)
    for kind in CONTAINERS:
        if kind is isolation and image:
            trials = suite.run_repository_attacks(verifier, around, image)
            what = f"changes to a repository that are judged right in {kind.value}"
            held = _reported(what, trials, tell, verbose) and held
            continue
        problem = containers.why_not(kind) or f"give --isolation {kind.value} --image IMAGE"
        tell(f"  containers by {kind.value}: not tried here: {problem}")
    return held


def _tell_tools(tell: Callable[[str], None]) -> None:
    """Report compilers and provers of this machine, and those that are missing."""
    for language, found in installed().items():
        if isinstance(found, Toolchain):
            tell(f"  {language}: {found.tool} {found.version}")
        else:
            tell(f"  {language}: not tried here: {found}")
    tell("  their memory: resident memory, watched every 10 ms; no cgroup is used")
    if importlib.util.find_spec("duckdb") is None:
        tell(f"  queries of DuckDB: not tried here: {installing('duckdb')}")
    for system, program in provers.installed().items():
        if system == "lean":
            tell(f"  proofs in lean: attacks are only read; {program}")
        elif isinstance(program, provers.Prover):
            tell(f"  proofs in {system}: {program.path} {program.version}")
        else:
            tell(f"  proofs in {system}: not tried here: {program}")


def _reported(
    what: str, trials: Iterable[suite.Trial], tell: Callable[[str], None], verbose: bool
) -> bool:
    """Report the trials; whether all are ok."""
    total = good = 0
    for trial in trials:
        total += 1
        good += trial.ok
        verdict = trial.finding.verdict.value
        reason = trial.finding.reason
        if verbose or not trial.ok:
            mark = "ok  " if trial.ok else "BAD "
            tell(f"  {mark}{trial.name}: {verdict}{f' ({reason})' if reason else ''}")
    tell(f"{good} of {total} {what}")
    return good == total
