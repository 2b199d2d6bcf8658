"""Hostile changes to a repository, as `grv doctor` tries them."""

from __future__ import annotations

import pytest

from grv.backends.attacks import repositories, suite
from grv.verifiers import Checks

pytestmark = pytest.mark.slow


def test_attacks_by_changes_to_a_repository_are_held() -> None:
    if problem := repositories.why_not():
        pytest.skip(problem)
    with suite.Surroundings() as around, Checks(workers=1, refute=False) as verifier:
        trials = list(suite.run_repository_attacks(verifier, around))
        assert [(trial.name, trial.finding) for trial in trials if not trial.ok] == []
        assert len(trials) == 1 + len(repositories.ATTACKS)
        assert around.damage() == []
