"""The program of `ScriptedAgent`: `python scripted_agent.py SCRIPT`. It needs nothing of grv.

SCRIPT is a file in JSON: {"form": ..., "steps": [...], "runs": FILE}. Each run takes the step of
its number, the last one if there are fewer, and adds a line to the file of runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main(path: str) -> int:
    """Do what the script says for this run; return the exit status."""
    script = json.loads(Path(path).read_text(encoding="utf-8"))
    number = int(os.environ["GRV_ATTEMPT"])
    steps = script["steps"]
    step = steps[min(number, len(steps)) - 1]
    with open(script["runs"], "a", encoding="utf-8") as runs:
        runs.write(f"{os.environ['GRV_PROBLEM']} {number}\n")
    time.sleep(step["seconds"])
    for command in step["run"]:
        subprocess.run(command, check=False)
    for name in step["delete"]:
        target = Path(name)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
    for name, text in step["write"].items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    _report(script["form"], step)
    if step["signal"]:
        os.kill(os.getpid(), step["signal"])
    return int(step["status"])


def _report(form: str, step: dict[str, Any]) -> None:
    """Say what the run cost and what came of it, as the agent that it stands in for does."""
    said = step["say"]
    dollars = step["dollars"]
    match form:
        case "claude":
            record = {"type": "result", "subtype": "success", "is_error": bool(step["status"])}
            usage = {"input_tokens": 10, "output_tokens": 90, "cache_read_input_tokens": 3000}
            more = {"result": said, "total_cost_usd": dollars, "usage": usage}
            print(json.dumps(record | more))
        case "codex":
            item = {"id": "item_0", "type": "agent_message", "text": said}
            usage = {"input_tokens": 1000, "cached_input_tokens": 400, "output_tokens": 200}
            print(json.dumps({"type": "thread.started", "thread_id": "0"}))
            print(json.dumps({"type": "item.completed", "item": item}))
            print(json.dumps({"type": "turn.completed", "usage": usage}))
        case "gemini":
            tokens = {"prompt": 1000, "candidates": 150, "cached": 400, "thoughts": 50}
            print("Loaded cached credentials.")
            models = {"models": {"gemini-x": {"tokens": tokens}}}
            print(json.dumps({"response": said, "stats": models}, indent=2))
        case "aider":
            print(said)
            print(f"Tokens: 1.0k sent, 200 received. Cost: ${dollars} message, ${dollars} session.")
        case "openhands":
            print(json.dumps({"type": "action", "action": "run", "command": "pytest"}))
            print(json.dumps({"type": "observation", "content": said}))
        case "mini":
            info = {"exit_status": "Submitted", "submission": said}
            spent = {"model_stats": {"instance_cost": dollars, "api_calls": 3}}
            place = sys.argv[sys.argv.index("--output") + 1]
            Path(place).write_text(json.dumps({"info": {**info, **spent}}), encoding="utf-8")
        case _:
            print(said)
            if dollars is not None:
                cost = json.dumps({"cost_usd": dollars})
                Path(os.environ["GRV_COST_FILE"]).write_text(cost, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
