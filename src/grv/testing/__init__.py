"""For authors of policies and backends: worlds to try them in, and contracts to inherit.

The contracts and `strategies.py` need the extra `testing`; the other modules do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader
from .drivers import Scripted, dialogue, drive, run, verified
from .worlds import (
    World,
    all_wrong,
    empty,
    flat,
    inverted,
    labelled,
    needle,
    population,
    star,
    tied,
)

if TYPE_CHECKING:
    from .agents import AgentStep as AgentStep
    from .agents import ScriptedAgent as ScriptedAgent
    from .batch_servers import FakeAnthropicBatches as FakeAnthropicBatches
    from .batch_servers import FakeOpenaiBatches as FakeOpenaiBatches
    from .contracts import PolicyContract as PolicyContract
    from .contracts_backends import GeneratorContract as GeneratorContract
    from .contracts_backends import ScorerContract as ScorerContract
    from .contracts_ledger import LedgerContract as LedgerContract
    from .fakes import ScriptedGenerator as ScriptedGenerator
    from .fakes import TableScorer as TableScorer
    from .fakes import TableVerifier as TableVerifier
    from .judges import gullible_judge as gullible_judge
    from .lean import FakeLean as FakeLean
    from .lean import LeanAnswer as LeanAnswer
    from .servers import FakeAnthropic as FakeAnthropic
    from .servers import FakeGemini as FakeGemini
    from .servers import FakeOpenai as FakeOpenai
    from .servers import FakeResponses as FakeResponses
    from .servers import FakeText as FakeText

# Loaded at first use: the contracts need pytest and hypothesis.
_HOMES = {
    "AgentStep": "agents",
    "FakeAnthropic": "servers",
    "FakeAnthropicBatches": "batch_servers",
    "FakeGemini": "servers",
    "FakeLean": "lean",
    "FakeOpenai": "servers",
    "FakeOpenaiBatches": "batch_servers",
    "FakeResponses": "servers",
    "FakeText": "servers",
    "GeneratorContract": "contracts_backends",
    "LeanAnswer": "lean",
    "LedgerContract": "contracts_ledger",
    "PolicyContract": "contracts",
    "ScorerContract": "contracts_backends",
    "ScriptedAgent": "agents",
    "ScriptedGenerator": "fakes",
    "TableScorer": "fakes",
    "TableVerifier": "fakes",
    "gullible_judge": "judges",
}

__all__ = [
    "AgentStep",
    "FakeAnthropic",
    "FakeAnthropicBatches",
    "FakeGemini",
    "FakeLean",
    "FakeOpenai",
    "FakeOpenaiBatches",
    "FakeResponses",
    "FakeText",
    "GeneratorContract",
    "LeanAnswer",
    "LedgerContract",
    "PolicyContract",
    "ScorerContract",
    "Scripted",
    "ScriptedAgent",
    "ScriptedGenerator",
    "TableScorer",
    "TableVerifier",
    "World",
    "all_wrong",
    "dialogue",
    "drive",
    "empty",
    "flat",
    "gullible_judge",
    "inverted",
    "labelled",
    "needle",
    "population",
    "run",
    "star",
    "tied",
    "verified",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
