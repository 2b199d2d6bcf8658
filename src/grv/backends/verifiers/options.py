"""How candidates are verified."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ...options import Family, option
from ...plugins import allow_checks
from ...theory.confirmations import Confirm
from ..sandbox.limits import Isolation, RunLimits
from .suite import TestOrder

if TYPE_CHECKING:
    from .judge_prices import JudgePrices
    from .pool import CheckVerifier
    from .verdict_store import VerdictStore


ENGINE_HELP = (
    "Where programs run: local is this machine. ray is the Ray cluster at RAY_ADDRESS, or one on"
    " this machine if that is not set; --workers are then per node."
)


class EngineName(enum.Enum):
    """Where programs run."""

    LOCAL = "local"
    RAY = "ray"


@dataclass(frozen=True)
class Verification(Family):
    """How the checks of problems are run: in how many processes, how isolated, with what limits.

    Use it to choose where checks run, such as on a Ray cluster; `verifier` makes the verifier.

    Examples:
        >>> import grv
        >>> grv.verifiers.Verification(workers=2).workers
        2
    """

    TITLE: ClassVar[str] = "Verification"

    workers: int | None = option(
        None, "Programs run at once.", least=1, most=1024, shown="one per processor"
    )
    isolation: Isolation = option(
        Isolation.JAIL,
        "How this machine is protected from programs: jail needs Landlock and seccomp, strict also"
        " every namespace, unsafe gives programs your rights. podman, docker and gvisor are the"
        " jail, with a container for checks that name an image.",
    )
    timeout: float = option(
        10.0,
        "Seconds per test, if the check sets no limit: the program's own time, without the time it"
        " waits for a processor.",
        metavar="S",
        least=1e-3,
        most=1e8,
    )
    memory: int = option(
        1024, "Megabytes per program, if the check sets no limit.", metavar="MB", least=1, most=1e9
    )
    allow_commands: bool = option(
        False,
        'Let checks of kind "command" run commands with your rights, checks of kind "http" send'
        " candidates to servers, and a job file name code of your own.",
        "--allow-commands",
    )

    allow_check: tuple[str, ...] = option(
        (),
        "A kind of check of a plugin that problems may use. It runs with your rights. Repeatable.",
        metavar="NAME",
    )

    refute: bool = option(
        True,
        "Fail candidates that cannot pass without verifying them: programs that do not compile or"
        " lack the function, texts without an answer.",
    )

    order_tests: TestOrder = option(
        TestOrder.LEARNED,
        "Order of the tests of a check: file, or learned, which runs those first that have refuted"
        " most candidates of the problem per cost. The verdict is the same.",
    )

    engine: EngineName = option(EngineName.LOCAL, ENGINE_HELP)

    wrong: float = option(
        0.05,
        "The probability of a wrong answer that you accept from checks that err, such as a judge.",
        metavar="P",
        least=1e-9,
        most=0.5,
    )

    confirm: Confirm = option(
        Confirm.COLD,
        "The rule by which checks that err decide: cold bounds wrong answers per search whatever"
        " the candidates are; bayes uses what earlier problems of the ledger have shown.",
    )

    gym: str | None = option(
        None,
        'The address of a resources server of NeMo Gym, for checks of kind "gym". Candidates are'
        " sent to it.",
        metavar="URL",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        allow_checks(self.allow_check)

    @property
    def limits(self) -> RunLimits:
        """What programs may use if their check sets no limit."""
        return RunLimits(seconds=self.timeout, memory_mb=self.memory)

    def verifier(
        self,
        store: VerdictStore | None = None,
        *,
        decides: bool = True,
        published: bool = False,
        prices: JudgePrices | None = None,
    ) -> CheckVerifier:
        """The verifier; the caller closes it. `CheckVerifier` explains the arguments."""
        from .pool import CheckVerifier

        engine = None
        if self.engine is EngineName.RAY:
            from ..cluster.engine import RayEngine

            engine = RayEngine(
                workers=self.workers,
                isolation=self.isolation,
                limits=self.limits,
                order_tests=self.order_tests,
            )
        return CheckVerifier(
            engine=engine,
            workers=self.workers,
            isolation=self.isolation,
            limits=self.limits,
            store=store,
            allow_commands=self.allow_commands,
            refute=self.refute,
            order_tests=self.order_tests,
            wrong=self.wrong,
            confirm=self.confirm,
            prices=prices,
            decides=decides,
            published=published,
            gym=self.gym,
        )
