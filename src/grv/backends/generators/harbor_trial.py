"""The program of `harbor:AGENT`: `python harbor_trial.py TASK IMAGE WORKDIR AGENT MODEL`.

It runs one trial of Harbor in the current folder and writes the diff to GRV_ANSWER and the cost to
GRV_COST_FILE. It needs nothing of grv. Exit status 1: the agent changed nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def main(task: str, image: str, workdir: str, agent: str, model: str) -> int:
    """Run a trial; return the exit status."""
    config = {
        "task": {"path": task},
        "trials_dir": str(Path("trials").resolve()),
        "agent": {"name": agent, "model_name": model or None},
        "artifacts": [workdir],  # what the agent left
        "verifier": {"disable": True},  # its container is the agent's own
    }
    Path("config.json").write_text(json.dumps(config), encoding="utf-8")
    ran = subprocess.run(["harbor", "trial", "start", "--config", "config.json"], check=False)
    results = list(Path("trials").glob("*/result.json"))
    if len(results) != 1:
        print(f"harbor left no result (exit status {ran.returncode})", file=sys.stderr)
        return 2
    write_cost(json.loads(results[0].read_text(encoding="utf-8")))
    after = results[0].parent / "artifacts" / workdir.lstrip("/")
    if after.is_symlink() or not after.is_dir():
        print(f"harbor collected no {workdir}", file=sys.stderr)
        return 2
    copy_out(image, workdir, Path("a"))
    shutil.move(after, "b")
    # In this way the names in the diff begin with a/ and b/, as git writes them.
    plain = ["--no-prefix", "--no-color", "--no-ext-diff", "--no-textconv"]
    command = ["git", "diff", "--no-index", *plain, "a", "b"]
    diff = subprocess.run(command, capture_output=True, check=False)
    if diff.returncode == 0:
        print("the agent changed nothing", file=sys.stderr)
        return 1
    if diff.returncode != 1:
        sys.stderr.buffer.write(diff.stderr)
        return 2
    Path(os.environ["GRV_ANSWER"]).write_bytes(diff.stdout)
    return 0


def write_cost(result: dict[str, Any]) -> None:
    """Write what the trial cost, as far as Harbor says."""
    context = result.get("agent_result") or {}
    names = {
        "cost_usd": "cost_usd",
        "prompt_tokens": "n_input_tokens",
        "cached_tokens": "n_cache_tokens",
        "completion_tokens": "n_output_tokens",
    }
    cost = {name: context.get(own) for name, own in names.items() if context.get(own) is not None}
    Path(os.environ["GRV_COST_FILE"]).write_text(json.dumps(cost), encoding="utf-8")


def copy_out(image: str, workdir: str, target: Path) -> None:
    """Copy the working folder of the image: what the agent started from."""
    engine = "docker" if shutil.which("docker") else "podman"
    made = subprocess.run(
        [engine, "create", image, "/bin/true"], capture_output=True, text=True, check=True
    )
    container = made.stdout.strip().splitlines()[-1]
    try:
        subprocess.run([engine, "cp", f"{container}:{workdir}", str(target)], check=True)
    finally:
        subprocess.run([engine, "rm", "--force", container], capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:6]))
