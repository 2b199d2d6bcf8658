"""Makes docs/gallery/attempts.png: what `grv attempt` prints in a real run with scripted agents.

python docs/make_attempts.py
"""

from __future__ import annotations

import html
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from grv.testing import AgentStep, ScriptedAgent

HERE = Path(__file__).parent
TASK = "Make slug() in words.py keep digits and join words by single dashes.\n"
TESTS = """\
import pytest

from words import slug


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Hello World", "hello-world"), ("a  b", "a-b"), ("Route 66!", "route-66"), ("", "")],
)
def test_slug(text, expected):
    assert slug(text) == expected
"""
START = "def slug(text):\n    return text.lower().replace(' ', '-')\n"
NEARLY = "def slug(text):\n    return '-'.join(text.lower().split())\n"
RIGHT = """\
import re


def slug(text):
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))
"""
SMALL = [
    AgentStep(
        write={"tests/test_words.py": "def test_slug():\n    pass\n"},
        say="All tests pass now.",
        dollars=0.04,
        seconds=2,
    ),
    AgentStep(write={"words.py": NEARLY}, say="Fixed. All tests pass.", dollars=0.05, seconds=3),
    AgentStep(status=1, say="I could not finish.", dollars=0.03, seconds=1),
    AgentStep(write={"words.py": NEARLY + "\n"}, say="Done.", dollars=0.05, seconds=2),
]
LARGE = [AgentStep(write={"words.py": RIGHT}, say="4 passed", dollars=0.62, seconds=4)]
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 18px 22px; background: #16181d; color: #d8dbe2; width: max-content }}
pre {{ font: 15px/1.5 "DejaVu Sans Mono", monospace; margin: 0 }}
b {{ color: #fff; font-weight: 600 }} i {{ color: #8b93a5; font-style: normal }}
</style><pre><i>$</i> <b>{command}</b>
<i>{progress}</i>
{result}</pre>"""


def run_attempts(folder: Path) -> tuple[str, str, str]:
    """The command as a user writes it, what it says while it runs, and its result."""
    project = folder / "words"
    (project / "tests").mkdir(parents=True)
    (project / "words.py").write_text(START, encoding="utf-8")
    (project / "tests" / "test_words.py").write_text(TESTS, encoding="utf-8")
    (project / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (project / "slug.md").write_text(TASK, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    agents = {"small": ScriptedAgent(folder, SMALL, name="small")}
    agents["large"] = ScriptedAgent(folder, LARGE, name="large")
    verify = shlex.join([sys.executable, "-m", "pytest", "-q"])
    words = [sys.executable, "-m", "grv", "attempt", "slug.md", "--verify", verify]
    for name, agent in agents.items():
        words += ["--agent", f"{name}={shlex.join(agent.command)}"]
    words += ["--price", "small=0.05", "--price", "large=0.6", "--budget", "5usd"]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, check=True)
    shown = (
        "grv attempt slug.md --verify 'pytest -q' --agent small=... --agent large=... \\\n"
        "      --price small=0.05 --price large=0.6 --budget 5usd"
    )
    return shown, done.stderr.strip(), done.stdout.strip().replace(str(project), ".")


def main() -> None:
    """Write the picture."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name:
        command, progress, result = run_attempts(Path(name))
    page = PAGE.format(
        command=html.escape(command), progress=html.escape(progress), result=html.escape(result)
    )
    target = HERE / "gallery" / "attempts.png"
    with sync_playwright() as play:
        names = ("chromium", "chromium-browser", "google-chrome")
        found = next(each for each in map(shutil.which, names) if each)
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_content(page)
        tab.locator("body").screenshot(path=target)
        browser.close()
    flat = Image.open(target).convert("RGB")
    flat.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    main()
