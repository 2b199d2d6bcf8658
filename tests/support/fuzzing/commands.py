"""Every command with inputs and options; a case is one of them, spoilt."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .mutations import words

LOGS = ("log.csv", "log.jsonl", "log.parquet", "log.tsv", "plain.jsonl")
LIVE = (
    "--generator openai:m --base-url URL --attempts 2 --first-pause 0 --patience 0 --workers 1"
    " --seed 3"
)


def _templates(text: str) -> dict[str, str]:
    """By name, from lines `name: arguments`; a line that is indented goes on."""
    joined = text.strip().replace("\n    ", " ").replace("LIVE", LIVE)
    return dict(line.split(": ", 1) for line in joined.splitlines())


TEMPLATES = _templates(
    """
compare: LOG --score score --orders 2 --policy adaptive --policy fixed(4,2) --json out.json
    --csv out.csv --costs 1,10 --width 2 --value 50 --latency 1,2 --unlabelled fail
compare job: log.csv --score score --job compare.toml
compare published: generations.jsonl --rewards rewards.jsonl --score r_last --orders 2 --policy
    default
compare learned: log.csv --score score --orders 2 --policy learned('prior.json')
compare measured: log.jsonl --orders 2 --costs measured --keys --policy varied --policy
    hindsight
compare cascade: log.csv --score cascade(score,score2,top=2,cost=0.5) --orders 2 --policy
    balanced
oracle: LOG --score score --orders 2 --costs 1,10 --json out.json --unlabelled drop
report: LOG --score score --orders 2 --many-orders 2 --policy adaptive -o out.html --json
    out.json
report saved: table.json -o out.html --csv tables
report ledger: answers.ledger --orders 2 --many-orders 2 -o out.html --unsolvable include
report job: --job report.toml -o out.html
learn: LOG --score score -o out.json --name s
learn ledger: answers.ledger -o out.json
convert: labels.jsonl scores.jsonl --score score -o out.csv
convert logs: log.jsonl -o out.parquet --problem problem --candidate candidate --key key
convert lists: generations.jsonl rewards.jsonl --score r_last=s --list samples -o out.jsonl
simulate: coding --policy adaptive --problems 2 --orders 2 --costs 1,10 --width 1 --seed 1
    --json o.json
simulate pools: needles --policy verify-all --problems 2 --orders 2 --candidates 16
star: class.txt --centre any --time-limit 1 --json out.json
star npy: class.npy --eta 0.5 --time-limit 1
star log: log.csv --score score --bins 3 --time-limit 1 --eta 0.5
theory lower-bound: class.txt --costs 1,10 --policy adaptive --runs 2 --seed 1 --time-limit 1
theory separation: --d 4 --epsilon 0.2 --delta 0.2 --runs 2 --seed 0 --json out.json
shells: --costs 1,10 --shells 4 --json out.json
problems hmmt: hmmt.jsonl -o out.jsonl --match exact
problems humaneval: human.jsonl.gz -o out.jsonl
problems livecodebench: code.jsonl -o out.jsonl --difficulty medium,hard --prompt
    {question}{code}
verify: problems.jsonl -o out.jsonl --allow-commands --workers 1 --timeout 2 --memory 512
    --evidence
verify cached: problems.jsonl -o out.jsonl --allow-commands --workers 1 --cache v.cache
verify again: problems.jsonl -o labels.jsonl --allow-commands --workers 1
verify programs: programs.jsonl -o out.jsonl --workers 1 --timeout 2 --isolation jail
solve: problems.jsonl LIVE --score length --budget 30 --out new.jsonl --allow-commands --width 2
solve scored: problems.jsonl LIVE --score score:ROOT --budget 30 --out new.jsonl
    --allow-commands
solve judged: problems.jsonl LIVE --score judge:m --budget 30 --out new.jsonl --allow-commands
solve measured: problems.jsonl LIVE --prices prices.toml --costs measured:1,1 --most 1,1
    --budget 9 --out new.jsonl --allow-commands
solve again: problems.jsonl LIVE --score length --budget 40 --out answers.jsonl --ledger
    answers.ledger --allow-commands
solve learned: problems.jsonl LIVE --score length --budget 30 --out new.jsonl --allow-commands
    --policy learned('length.json')
solve job: --job solve.toml
solve dry: problems.jsonl LIVE --budget 30 --out new.jsonl --dry-run
collect: problems.jsonl LIVE --score length -n 2 --out new.csv --allow-commands --verify all
collect priced: problems.jsonl LIVE --score classify:ROOT -n 2 --out new.parquet --verify 1
    --prices prices.toml --allow-commands
collect job: --job collect.toml
collect dry: problems.jsonl LIVE -n 2 --out new.csv --dry-run --max-tokens 5
runs list: answers.ledger
runs show: answers.ledger p0
runs check: answers.ledger
runs export: answers.ledger -o out.csv --prices prices.toml
doctor: --isolation jail --workers none
demo: --replay --first none
"""
)
SLOW = {"verify programs": 0.25, "doctor": 0.3, "demo": 0.3}
SLOW |= dict.fromkeys(("report", "report ledger", "report job"), 0.4)
VALUES = (
    "",
    "10000000000000000000000000",
    "1" * 5000,
    "x" * 300,
    "\x1b[2J",
    "a b",
    "é",
    "\u202e",
    *words("0 -1 1 2 nan inf -inf 1e999 1,10 1,0 1,2,3 all x 0x10 1_000 . / a,b strict unsafe"),
    *words("1e-90,1e90 1e90,1e-90 1e-300 1e308 0.5"),
    *words("/dev/null /dev/full nowhere/x out.csv log.csv answers.ledger -- - --help jail"),
    *words("measured measured:1,2 cascade( cascade(a,b,top=1) fixed(1) learned('x') difficulty-3"),
    *words("threshold(0.1) adaptive hedged(2) score:http:// judge: openai: embedded:x http://["),
    *words("http://h:99999 http://me:secret@127.0.0.1:9/v1?key=12345678#x"),
)


@dataclass(frozen=True)
class Case:
    """One command with its arguments, and the files among them that are spoilt."""

    number: int
    name: str
    arguments: tuple[str, ...]
    spoilt: tuple[str, ...]
    random: Random


def case(number: int, url: str, seed: int = 0) -> Case:
    """The case of a number: always the same."""
    random = Random(f"{seed}/{number}")
    weights = [SLOW.get(name, 1.0) for name in TEMPLATES]
    name = random.choices(list(TEMPLATES), weights)[0]
    text = TEMPLATES[name].replace("LOG", random.choice(LOGS)).replace("URL", url)
    given = text.replace("ROOT", url.removesuffix("/v1")).split()
    files = [word for word in given if word.rpartition(".")[2] in KINDS]
    read = [word for at, word in enumerate(given) if word in files and not _is_written(given, at)]
    read += [word.split("'")[1] for word in given if word.startswith("learned('")]
    if name.endswith(" job"):
        read += ["problems.jsonl", "log.csv"]
    spoilt = tuple(random.sample(read, 1)) if read and random.randrange(6) else ()
    if not spoilt or random.randrange(8) == 0:
        given = _spoilt_words(given, random)
    return Case(number, name, (*command_of(name), *given), spoilt, random)


def command_of(name: str) -> list[str]:
    """The words of a command, of a template's name."""
    parts = name.split()
    return parts[: 2 if parts[0] in ("theory", "runs", "problems") else 1]


KINDS = ("csv", "tsv", "jsonl", "json", "parquet", "toml", "txt", "npy", "ledger", "cache", "gz")


def _is_written(given: list[str], at: int) -> bool:
    new = ("-o", "--out", "--json", "--csv")
    return at > 0 and given[at - 1] in new and given[at] not in ("labels.jsonl", "answers.jsonl")


def _spoilt_words(given: list[str], random: Random) -> list[str]:
    """A value of an option replaced; or a word lost, doubled or added."""
    spoilt = list(given)
    at = random.randrange(len(spoilt))
    match random.randrange(8):
        case 0:
            del spoilt[at]
        case 1:
            spoilt.insert(at, spoilt[at])
        case 2:
            spoilt.insert(at, random.choice(("--nonsense", "--help", "-n", "--json", *VALUES)))
        case _:
            # A long pause is long, and no fault.
            options = [i for i in range(1, len(spoilt)) if spoilt[i - 1].startswith("-")]
            options = [i for i in options if spoilt[i - 1] not in ("--first-pause", "--patience")]
            spoilt[random.choice(options or [at])] = random.choice(VALUES)
    return spoilt
