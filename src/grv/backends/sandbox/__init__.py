"""Runs untrusted programs, each in a jailed process of its own.

The judge (the user's process) talks to a warm parent process, the zygote. The zygote forks one
jailed child per run.

    limits.py   what a run may use; how it ended; which isolation is in force
    isolation/  the walls that the kernel enforces
    judge's side:
        worker.py   one zygote and its runs, over link.py, the socket to it
        run.py      one run
        message.py  reads a candidate's message, within bounds
        tool_worker.py  builds and runs programs in any language
        clock.py    measures the time of a candidate, without the machine's load
    zygote's side:
        zygote.py   forks and watches the children
        tools.py    the same for programs in any language, and the tools that build them
        scratch.py  measures and empties the scratch directory
    child's side:
        interpreter.py  makes a forked child look like a fresh interpreter
        runner.py       runs the candidate: a program, or calls of a function
        tester.py       runs the user's test against a proxy of the candidate
        evaluating.py   refuses tests that run an answer as code
    between them:
        wire.py     frames on a pipe
        plain.py    values as tagged JSON
        kinds.py    more kinds of values, for tests
    tree.py     the processes below a process
    start.py    how processes start, however grv was started

Invariants:

 1. The zygote never sees a program, an input or an expected value. The judge sends them through
    pipes whose ends the zygote only passes on to the child. So no run leaves anything in the
    memory that the next child is forked from. Each candidate, and each test of a candidate, has a
    child of its own.
 2. The child says "ready" only when its whole jail is in place, and before it interprets any
    untrusted byte. If a piece of the jail fails, the run is broken.
 3. The zygote reports how a run ended (exit code, signal, cause), on a socket that the child does
    not have. Whatever comes through the child's own pipes is only an answer.
 4. A child dies with its zygote (parent-death signal, and process namespace if there is one). A
    zygote dies with its judge (end of file on the socket, and a pidfd of the judge).

Modules that run in the zygote or the child import only the standard library and one another.
"""
