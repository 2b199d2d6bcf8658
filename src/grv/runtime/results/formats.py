"""The formats of `grv runs export`."""

from __future__ import annotations

import enum


class ExportFormat(enum.StrEnum):
    """What `grv runs export` writes.

    `log` is a log for `grv compare`; `sft` has a line per verified answer, `dpo` one per pair of an
    answer and a candidate that failed.
    """

    LOG = "log"
    SFT = "sft"
    DPO = "dpo"
