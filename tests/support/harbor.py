"""Job folders in Harbor's layout. The asset was written by Harbor 0.25's own models."""

from __future__ import annotations

import copy
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

ASSET = Path(__file__).parents[1] / "assets" / "harbor" / "trial_result.json"


def trial_result(
    task: str,
    number: int,
    reward: float | None,
    *,
    cost: float | None = 0.5,
    seconds: float = 60.0,
    tokens: int = 5000,
) -> dict[str, Any]:
    """The result of a trial."""
    result: dict[str, Any] = copy.deepcopy(json.loads(ASSET.read_text()))
    started = datetime.fromisoformat(result["started_at"]) + timedelta(minutes=number)
    agent = started + timedelta(seconds=58)
    verifier = agent + timedelta(seconds=100 + tokens / 100)
    ended = verifier + timedelta(seconds=seconds)
    result |= {
        "task_name": task,
        "trial_name": f"{task.rpartition('/')[2]}__{number:07}",
        "task_checksum": f"{task:0>64}"[-64:],
        "started_at": started.isoformat(),
        "finished_at": ended.isoformat(),
        "agent_execution": {
            "started_at": agent.isoformat(),
            "finished_at": verifier.isoformat(),
        },
        "verifier": {"started_at": verifier.isoformat(), "finished_at": ended.isoformat()},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
    }
    result["agent_result"] |= {"cost_usd": cost, "n_output_tokens": tokens}
    return result


def write_trial(job: Path, result: dict[str, Any]) -> Path:
    """The folder of a trial, with the files that Harbor leaves there."""
    folder = job / str(result["trial_name"])
    for name in ("agent", "verifier", "artifacts"):
        (folder / name).mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result, indent=4))
    (folder / "config.json").write_text(json.dumps(result["config"]))
    (folder / "trial.log").write_text("")
    return folder


def write_job_folder(job: Path, results: list[dict[str, Any]]) -> Path:
    """The folder of a job."""
    job.mkdir(parents=True)
    for result in results:
        write_trial(job, result)
    stats = {"n_completed_trials": len(results), "evals": {}}
    about = {"id": "0" * 32, "n_total_trials": len(results), "stats": stats}
    (job / "result.json").write_text(json.dumps(about))
    (job / "config.json").write_text("{}")
    (job / "job.log").write_text("")
    return job
