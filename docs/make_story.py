"""Draws the two pictures of the start page: the idea, and what it costs on real logs.

python docs/make_story.py    no browser; the figures are in docs/research/real-logs.json
"""

from __future__ import annotations

import json
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
FIGURES = HERE / "research" / "real-logs.json"
GALLERY = HERE / "gallery"
INK, FAINT, PAPER = "#1a1d23", "#535b68", "#ffffff"
BLUE, GREEN, RED, GREY, PURPLE, ORANGE = (
    "#0b6bb8", "#00805a", "#c0232c", "#6a717d", "#9c3d97", "#c2570c",
)  # fmt: skip
LOGS = {
    "humaneval codet": "HumanEval, 121 problems",
    "aime text_lr": "mock AIME, 42 problems",
}
# The rows of the picture: what they are, in words, and their colours, as in reports.
ROWS = {
    "difficulty-1": ("the best fixed best-of-n", GREY),
    "verify-all": ("verify each as it comes", GREEN),
    "adaptive": ("the published algorithm", ORANGE),
    "varied": ("grv, without history", BLUE),
    "learning": ("grv solve, learning", PURPLE),
    "hindsight": ("all verdicts known in advance", INK),
}


def text(x: float, y: float, words: str, size: int = 14, **look: str) -> str:
    """A text; `look` has more attributes."""
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in look.items())
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{more}>{escape(words)}</text>'


def picture(width: int, height: int, title: str, parts: list[str]) -> str:
    """A whole SVG, on white, so that it can be read on a dark page, too."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            f' font-family="system-ui, sans-serif" fill="{INK}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="12" fill="{PAPER}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def idea() -> str:
    """Candidates in order of their scores; two are verified; the bill."""
    scores = (0.91, 0.83, 0.64, 0.52, 0.47, 0.33, 0.21, 0.12)
    parts = [
        text(30, 40, "1  generate", 17, font_weight="600"),
        text(30, 62, "a model makes candidates:", fill=FAINT),
        text(30, 81, "cheap, mostly wrong", fill=FAINT),
        text(270, 40, "2  rank", 17, font_weight="600"),
        text(270, 62, "a score orders them:", fill=FAINT),
        text(270, 81, "nearly free, only a hint", fill=FAINT),
        text(530, 40, "3  verify", 17, font_weight="600"),
        text(530, 62, "tests, a check or a person:", fill=FAINT),
        text(530, 81, "expensive, and sure", fill=FAINT),
        text(780, 40, "the bill", 17, font_weight="600"),
        text(780, 62, "stop at the first pass", fill=FAINT),
    ]
    order = (5, 2, 7, 0, 4, 1, 6, 3)  # in which the candidates arrive
    for place, number in enumerate(order):
        x, y = 48 + 46 * (place % 4), 130 + 56 * (place // 4)
        parts.append(f'<circle cx="{x}" cy="{y}" r="17" fill="{BLUE}" fill-opacity=".16"/>')
        parts.append(text(x, y + 5, "abcdefgh"[number], text_anchor="middle", fill=BLUE))
    for place, score in enumerate(scores):
        y = 112 + 22 * place
        parts.append(text(275, y + 11, "abcdefgh"[place], 13, fill=BLUE))
        parts.append(
            f'<rect x="292" y="{y}" width="{150 * score:g}" height="13" rx="3" fill="{BLUE}"'
            f' fill-opacity="{0.9 if place < 2 else 0.3}"/>'
        )
        parts.append(text(292 + 150 * score + 6, y + 11, f"{score:.2f}", 11, fill=FAINT))
    for y, name, verdict, colour in ((118, "a", "failed", RED), (140, "b", "passed", GREEN)):
        parts.append(f'<path d="M475 {y}H522" stroke="{FAINT}" stroke-width="1.5"/>')
        parts.append(f'<path d="M522 {y - 5}l9 5l-9 5z" fill="{FAINT}"/>')
        parts.append(text(541, y + 5, f"{name}  {verdict}", 15, fill=colour, font_weight="600"))
    parts.append(text(541, 190, "c to h are never verified", fill=FAINT))
    parts.append(f'<path d="M235 150h18m-7 -6l7 6l-7 6" fill="none" stroke="{FAINT}"/>')
    lines = (("8 candidates at 1", "8"), ("2 verifications at 10", "20"), ("b, verified", "28"))
    for place, (words, amount) in enumerate(lines):
        y = 118 + 30 * place + (8 if place == 2 else 0)
        weight = "700" if place == 2 else "400"
        parts.append(text(780, y, words, font_weight=weight))
        parts.append(text(985, y, amount, font_weight=weight, text_anchor="end"))
    parts.append(f'<path d="M780 160H985" stroke="{INK}"/>')
    parts.append(text(780, 222, "verified as they came: 66", fill=FAINT))
    parts.append(text(30, 318, "When to generate more, and when to pay for a verification?", 16))
    parts.append(text(30, 341, "That is what grv decides, step by step, for each problem.", 16))
    return picture(1015, 366, "Generate, rank, verify, and what it costs", parts)


def costs() -> str:
    """Two charts of bars, with intervals: the cost of a verified answer."""
    found = json.loads(FIGURES.read_text(encoding="utf-8"))
    title = "What a verified answer costs on two public logs"
    parts = [text(30, 38, title, 18, font_weight="600")]
    parts.append(
        text(
            30, 60, "Relative to verifying each candidate as it comes; 95 % intervals.", fill=FAINT
        )
    )
    for side, (key, name) in enumerate(LOGS.items()):
        left = 250 + 380 * side
        parts.append(text(left, 92, name, 14, font_weight="600"))
        rows = found[key]["rows"]
        one = left + 150  # where the ratio is 1
        for place, (policy, (words, colour)) in enumerate(ROWS.items()):
            y = 108 + 34 * place
            row = rows[policy]
            if side == 0:
                bold = "700" if policy == "learning" else "400"
                parts.append(text(235, y + 15, words, text_anchor="end", font_weight=bold))
            end = min(row["ratio"], 1.9)
            size = f'width="{150 * end:.1f}" height="20"'
            parts.append(f'<rect x="{left}" y="{y}" {size} rx="3" fill="{colour}"/>')
            if row["ratio"] > end:  # the bar is cut
                x = left + 150 * end - 18
                parts.append(f'<path d="M{x:g} {y + 22}l8 -24h5l-8 24z" fill="{PAPER}"/>')
            elif policy != "verify-all":
                ends = [left + 150 * min(row[name], 1.9) for name in ("low", "high")]
                parts.append(
                    f'<path d="M{ends[0]:.1f} {y + 10}H{ends[1]:.1f}" stroke="{INK}"'
                    ' stroke-opacity=".55" stroke-width="2"/>'
                )
                end = max(end, min(row["high"], 1.9))
            parts.append(
                text(left + 150 * end + 7, y + 15, f"{row['ratio']:.2f}", font_weight="600")
            )
        parts.append(
            f'<path d="M{one} 102V{108 + 34 * len(ROWS)}" stroke="{FAINT}" stroke-dasharray="3 3"/>'
        )
    return picture(1015, 330, title, parts)


if __name__ == "__main__":
    (GALLERY / "idea.svg").write_text(idea(), encoding="utf-8")
    (GALLERY / "real-logs.svg").write_text(costs(), encoding="utf-8")
