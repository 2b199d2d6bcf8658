"""Logs of inspect_ai, read through its own Python API.

Each sample in each epoch is one candidate. The label is the value of a scorer; `C` passes, and `I`,
`P` (partly correct) and `N` (no answer) fail. The key is the answer that this scorer extracted.
"""

from __future__ import annotations

import copy
import io
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from typing import IO, Any

from ..core.errors import LogError, UsageError, installing
from ..files import MOST_UNPACKED, UNPACKED_RATIO, error_line
from ..memory import gigabytes
from .lookup import look_up

_LABELS = {"C": True, "I": False, "P": False, "N": False}
_PIECE = 1 << 20
_ZSTANDARD = 93  # the method that inspect_ai packs with; the module knows it from Python 3.14 on
_UNUSED = {"events", "events_data", "messages", "store", "attachments", "timelines"}


def is_inspect_log(path: str) -> bool:
    """Whether a file is a log of inspect_ai, by its name and its beginning."""
    if path.lower().endswith(".eval"):
        return True
    if not path.lower().endswith(".json"):
        return False
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
    except (OSError, ValueError):
        return False
    return all(name in start for name in (b'"version"', b'"status"', b'"eval"', b'"eval_id"'))


class InspectReader:
    """Reads logs of one model.

    Args:
        label: the scorer that labels, or a path such as `grade.value.right`; None if the logs have
            only one scorer that can.

    Attributes:
        notes: sentences about what the reader decided.
    """

    def __init__(self, label: str | None = None) -> None:
        self.label = label
        self.notes: list[str] = []
        self._models: dict[str, str] = {}
        self._read: dict[str, list[tuple[int, dict[str, Any]]]] = {}

    def samples(self, path: str) -> list[tuple[int, dict[str, Any]]]:
        """The number and the fields of each sample of a log."""
        if path not in self._read:
            self._read[path] = list(enumerate(self._labelled(path), 1))
        return self._read[path]

    def _labelled(self, path: str) -> list[dict[str, Any]]:
        header, samples = _opened(path)
        self._check_model(path, header.eval.model)
        entries = [_entry(header.eval.task, sample) for sample in samples]
        if not entries:
            raise LogError("the log has no samples", path=path)
        if header.status != "success":
            how = f"the evaluation did not finish ({header.status})"
            self.notes.append(f"{path}: {how}; its {len(entries)} samples are used.")
        failed = sum(entry["error"] is not None for entry in entries)
        if failed:
            self.notes.append(f"{path}: {failed} samples ended with an error and have no label.")
        label = self.label or self._only_label(path, entries)
        values = [look_up(entry, [label]) for entry in entries]
        for entry, value in zip(entries, values, strict=True):
            passed = _LABELS.get(value, value) if isinstance(value, str) else value
            entry |= {"passed": passed, label: passed}
            scorer = entry["scores"].get(label.partition(".")[0], {})
            entry.setdefault("key", _short(scorer.get("answer")))
        if values.count("P"):
            partly = f"{values.count('P')} partly correct samples (P) count as failed"
            self.notes.append(f"{path}: {partly}.")
        return entries

    def _check_model(self, path: str, model: str) -> None:
        self._models.setdefault(model, path)
        if len(self._models) > 1:
            raise UsageError(
                f"the logs are of several models ({', '.join(self._models)}): convert those of each"
                " model into a log of its own"
            )

    def _only_label(self, path: str, entries: list[dict[str, Any]]) -> str:
        """The scorer whose values are labels, if there is exactly one."""
        values: dict[str, list[Any]] = {}
        for entry in entries:
            for name, score in entry["scores"].items():
                values.setdefault(name, []).append(score["value"])
        labels = [name for name, given in values.items() if all(map(_is_label, given))]
        if len(labels) == 1:
            self.notes.append(f"The scorer {labels[0]} labels the candidates.")
            return labels[0]
        found = ", ".join(labels or values) or "none"
        what = "several scorers could label" if labels else "no scorer labels"
        raise UsageError(f"{path}: {what} the candidates ({found}): choose one with --passed")


def _opened(path: str) -> tuple[Any, list[Any]]:
    """The header and the samples of a log, as inspect_ai gives them."""
    _check_unpacked(path)
    try:
        from inspect_ai.log import read_eval_log, read_eval_log_samples
    except ImportError as error:
        raise UsageError(
            f"{path}: a log of inspect_ai is read with inspect_ai: {installing('inspect')}"
        ) from error
    try:
        header = read_eval_log(path, header_only=True)
        given = {"all_samples_required": False}
        try:
            samples = list(read_eval_log_samples(path, exclude_fields=_UNUSED, **given))
        except TypeError:  # versions before `exclude_fields`
            samples = list(read_eval_log_samples(path, **given))
    except Exception as error:  # a damaged file can make it raise almost anything
        raise LogError(f"inspect_ai cannot read it: {error_line(error)}", path=path) from error
    return header, samples


def _check_unpacked(path: str) -> None:
    """Refuse an archive that unpacks to far more than a log does. inspect_ai has no limit.

    The archive says how large its files are. All are unpacked to see whether that is true.
    """
    if not zipfile.is_zipfile(path):
        return
    limit = max(MOST_UNPACKED, UNPACKED_RATIO * os.path.getsize(path))
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if sum(part.file_size for part in parts) > limit:
                raise LogError(f"unpacks to more than {gigabytes(limit)}; refused", path=path)
            for part in parts:
                size = 0
                for piece in _pieces(archive, part):
                    size += len(piece)
                    if size > part.file_size:
                        raise ValueError(f"{part.filename} is larger than the archive says")
    except LogError:
        raise
    except Exception as error:  # each method has errors of its own
        raise LogError(f"not a readable archive: {error_line(error)}", path=path) from error


def _pieces(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """The content of a file of an archive, some at a time.

    The module unpacks all that it has read at once, unless the method is one of the first two: some
    kilobytes become gigabytes. So others than that of inspect_ai are refused.
    """
    if part.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(part) as file:
            yield from iter(lambda: file.read(_PIECE), b"")
    elif part.compress_type == _ZSTANDARD:
        packed = copy.copy(part)
        packed.compress_type = zipfile.ZIP_STORED
        packed.file_size = part.compress_size
        del packed.CRC  # it is that of the unpacked file
        with archive.open(packed) as file, closing(_unpacking(file)) as unpacked:
            yield from iter(lambda: unpacked.read(_PIECE), b"")
    else:
        raise ValueError(f"{part.filename} is packed by the method {part.compress_type}")


def _unpacking(file: IO[bytes]) -> Any:
    """What a file in Zstandard unpacks to; nothing if inspect_ai could not unpack it either."""
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdFile

            return ZstdFile(file)
        from zstandard import ZstdDecompressor
    except ImportError:
        return io.BytesIO()
    return ZstdDecompressor().stream_reader(file, read_across_frames=True)


def _entry(task: str, sample: Any) -> dict[str, Any]:
    """The fields of a sample. Each scorer's value is a field too, for use in paths."""
    scores = {
        name: {"value": score.value, "answer": score.answer, "metadata": score.metadata}
        for name, score in (sample.scores or {}).items()
    }
    choices = sample.output.choices if sample.output is not None else []
    logprobs = choices[0].logprobs if choices else None
    own = {
        "problem": f"{task}/{sample.id}",
        "epoch": sample.epoch,
        "text": sample.output.completion if sample.output is not None else "",
        "logprobs": None if logprobs is None else [each.logprob for each in logprobs.content],
        "scores": scores,
        "metadata": sample.metadata,
        "error": sample.error,
    }
    return {**{name: score["value"] for name, score in scores.items()}, **own}


def _is_label(value: Any) -> bool:
    if isinstance(value, str):
        return value in _LABELS
    return isinstance(value, bool | int | float) and value in (0, 1)


def _short(answer: Any) -> Any:
    """An answer as a key; None if it is not one, such as a whole text."""
    return answer if isinstance(answer, str) and 0 < len(answer) <= 200 else None
