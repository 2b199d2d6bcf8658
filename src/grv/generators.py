"""Generators: language models that make candidates.

`OpenAI` asks a model server, `Batched` asks it in batches at half the price, `Embedded` runs a
small model on this machine, `Command` runs a program such as a coding agent. A function of the
problem that returns one text is a generator too, and so is any object with the method `generate`
of the protocol `Generator`.

    >>> import grv
    >>> grv.generators.OpenAI("gpt-oss-20b", base_url="http://localhost:8000/v1").model
    'gpt-oss-20b'
"""

from .backends.generators.batches import BatchedGenerator as Batched
from .backends.generators.command import CommandGenerator as Command
from .backends.generators.embedded import EmbeddedGenerator as Embedded
from .backends.generators.openai import OpenaiGenerator as OpenAI
from .backends.generators.sampling import Sampling
from .backends.protocols import Generator
from .core.errors import GeneratorError

__all__ = ["Batched", "Command", "Embedded", "Generator", "GeneratorError", "OpenAI", "Sampling"]
