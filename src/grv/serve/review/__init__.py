"""Review by people: a queue of candidates, leases on them, and verdicts in the ledger."""

from .desk import Desk as Desk
from .desk import Refused as Refused
