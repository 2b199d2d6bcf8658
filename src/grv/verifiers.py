"""Verifiers: sure and expensive verdicts on candidates.

`Checks` carries out the check of a problem: it runs programs in a sandbox, compares mathematical
answers, calls a command, a server or a person. A function of the problem and a text that returns
True or False is a verifier too, and so is any object with the method `verify` of the protocol
`Verifier`, which returns a `Finding`.

    >>> import grv
    >>> grv.verifiers.Finding(grv.Verdict.FAILED, "wrong sum").reason
    'wrong sum'
"""

from .backends.protocols import Finding, ParkedCall, Verifier
from .backends.verifiers.options import Verification
from .backends.verifiers.pool import CheckVerifier as Checks
from .core.errors import VerifierError

__all__ = ["Checks", "Finding", "ParkedCall", "Verification", "Verifier", "VerifierError"]
