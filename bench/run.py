"""Run the benches, print their figures, and say what they mean: `make bench`.

`--quick` takes seconds instead of minutes, at sizes that show only that everything runs, and leaves
out the benches that start many processes.
`--data=FOLDER` adds real logs to the table of policies, and what free refutation saves on them.
`--record` also writes the figures to `recorded.json`, which the README quotes.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from policies import table

HERE = Path(__file__).parent


def bench(script: str, *flags: str) -> Any:
    print(f"bench/{script} ...", flush=True)
    call = [sys.executable, str(HERE / script), *flags]
    return json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout)


def say_live(live: Any) -> None:
    overhead, loopback, many = (live[name] for name in ("overhead", "loopback", "many"))
    print("Live search, with a ledger on disk:")
    print(
        f"  {overhead['sqlite_ms']} ms of processor time per candidate with backends that answer at"
        f" once ({overhead['memory_ms']} without the disk)"
    )
    for row in loopback:
        print(
            f"  {row['in_flight']} in flight on loopback, {row['candidates_per_request']} each:"
            f" {row['of_the_bare_client']} of the requests of the bare openai client in as many"
            f" loops, {row['of_the_bare_client_gathered']} of it under a semaphore;"
            f" {row['grv_ms']} ms of processor time per request beside {row['bare_ms']}"
        )
    print(f"  {live['second']['of_the_ideal']} of the ideal when an answer takes a second")
    few, lots = many["problems"]
    print(
        f"  {few} and {lots} problems in one run: {many['peak_mb'][0]} and {many['peak_mb'][1]} MB;"
        f" grv runs list then takes {many['runs_list_seconds']} s"
    )


def say_growth(growth: Any) -> None:
    print("Growth with the rows of a log (1 is proportional), by more and by longer problems:")
    more, longer = (growth[name]["commands"] for name in ("more_problems", "longer_problems"))
    shared = growth["processes"]["commands"]
    for name, figures in more.items():
        by_length = f", {longer[name]['exponent']}" if name in longer else ""
        print(
            f"  {name}: {figures['exponent']}{by_length}; 2 processes are {shared[name]['ratio']}"
            f" times as fast as 1; up to {max(figures['megabytes'])} MB"
        )
    for name in ("learn", "learned"):
        print(f"  {name}: {more[name]['times_the_default_policy']} times the default policy")


def say_serve(serve: Any) -> None:
    print(
        f"Served over HTTP, {serve['in_flight']} streams: {serve['serve_ms']} ms of processor time"
        f" per candidate, {serve['of_solve']} times that of grv solve"
    )


def say_decisions(decisions: Any) -> None:
    print("Microseconds of a decision (the time that one in a hundred exceeds), with keys:")
    load = decisions["load"]
    print(f"  (processor time; load {load['1 minute']} on {load['processors']} processors)")
    for policy, sizes in decisions.items():
        if policy == "load":
            continue
        figures = [
            f"{figure['median']} ({figure['one_in_a_hundred']}) in a pool of {size.split()[0]}"
            for size, figure in sizes.items()
            if size.endswith("keyed")
        ]
        print(f"  {policy}: {', '.join(figures)}")


def say_star(star: Any) -> None:
    print(f"Star numbers, at most {star['limit']:g} s each:")
    for row in (*star["families"], *star["random"]):
        low, high = row["at_the_end"]
        number = str(low) if low == high else f"{low} to {high}"
        centre = "" if row["centre"] == "zero" else ", any centre"
        print(
            f"  {row['class']}{centre} ({row['concepts']} x {row['points']}): {number},"
            f" {row['seconds']} s"
        )
    beside = star["beside_highs"]
    print(
        f"  {beside['class']}: {beside['grv_seconds']} s, an integer programme by HiGHS"
        f" {beside['highs_seconds']} s"
    )


def say_refuting(figures: Any) -> None:
    refuted = figures["refuted"]
    tests = figures["order_of_tests"]
    print(
        f"Refuted without verification: {refuted['refuted']} of {refuted['candidates']} programs,"
        f" {refuted['refuted_but_passed_by_label']} of them wrongly; verifications saved:"
    )
    for row in figures["saved"]:
        keys = ", keys" if row["keys"] else ""
        where = f"{row['score']}, ratio {row['ratio']:g}{keys}"
        print(f"  {row['policy']} ({where}): {row['verifications_saved']:.1%}")
    ratios = ", ".join(f"{kind} {row['seconds_of_the_given_order']}" for kind, row in tests.items())
    print(f"  seconds with deadly tests first, of those in the given order: {ratios}")


def main() -> None:
    flags = [flag for flag in sys.argv[1:] if flag == "--quick"]
    startup = bench("startup.py", *flags)
    replay = bench("replay.py", *flags)
    growth = None if flags else bench("growth.py")
    decisions = bench("decisions.py", *flags)
    sandbox = bench("sandbox.py", *flags)
    live = bench("live.py", *flags)
    serve = None if flags else bench("serve.py")
    data = [word for word in sys.argv[1:] if word.startswith("--data=")]
    policies = bench("policies.py", "--json", *flags, *data)
    star = bench("star.py", *flags)
    has_programs = any((Path(word[7:]) / "humaneval_programs.jsonl.gz").exists() for word in data)
    refuting = bench("refuting.py", *flags, *data) if has_programs else None
    paper = replay["paper"]
    print(
        f"\nimport grv: {startup['import grv']} s"
        f" ({startup['import grv'] / startup['python -c pass']:.1f} times a bare python),"
        f" grv --help: {startup['grv --help']} s"
    )
    print(
        f"One task of the paper ({paper['problems']} problems x {paper['candidates']} candidates x"
        f" {paper['orders']} orders, four price lists, all rows):"
        f"\n  grv compare {paper['grv_seconds']} s, {paper['grv_megabytes']} MB;"
        f" straightforward {paper['straightforward_seconds']} s:"
        f" {paper['times_faster']} times faster, same figures"
    )
    print("The default rows, as the log grows:")
    for size in replay["scale"]:
        print(
            f"  {size['problems']:5} problems x {size['candidates']} candidates x"
            f" {size['orders']:3} orders: {size['seconds']:6} s, {size['megabytes']} MB"
        )
    if growth is not None:
        say_growth(growth)
    say_decisions(decisions)
    print("Programs verified in the sandbox, times a fresh unprotected interpreter for each:")
    for size in sandbox["against_fresh"]:
        kinds = ("function", "stdin", "asserts")
        ratios = ", ".join(f"{kind} {size[kind]['times_faster']}" for kind in kinds)
        print(f"  {size['workers']} workers: {ratios}")
    for kind, row in sandbox["processor_time"].items():
        print(f"  {kind}: {row['grv_ms']} ms of processor time, {row['times_less']} times less")
    memory = sandbox["memory"]
    print(
        f"  the jail itself {sandbox['per_run']['jail_itself_ms']} ms a run; memory over"
        f" {memory['runs']} runs: judge {memory['before']['judge_mb']} to"
        f" {memory['after']['judge_mb']} MB, zygote {memory['before']['zygote_mb']} to"
        f" {memory['after']['zygote_mb']} MB"
    )
    say_live(live)
    if serve is not None:
        say_serve(serve)
    print(table(policies))
    say_star(star)
    if refuting is not None:
        say_refuting(refuting)
    if "--record" in sys.argv:
        machine = {"python": platform.python_version(), "machine": platform.machine()}
        record = {"machine": machine, "startup": startup, "replay": replay, "sandbox": sandbox}
        record |= {"growth": growth, "live": live, "serve": serve, "decisions": decisions}
        record |= {"policies": policies, "star": star}
        record |= {"refuting": refuting} if refuting is not None else {}
        kept = json.loads((HERE / "recorded.json").read_text())  # of benches that run on their own
        (HERE / "recorded.json").write_text(json.dumps(kept | record, indent=1) + "\n")


if __name__ == "__main__":
    main()
