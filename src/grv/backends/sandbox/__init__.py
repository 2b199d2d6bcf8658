"""Untrusted programs, each in a jailed process of its own.

The judge (the user's process) talks to a warm parent, the zygote, which forks one jailed child a
run. What each file is for:

    limits.py      what a run may use; how it ended; which isolation was in force
    kernel.py      the Linux system calls that Python lacks, through ctypes
    syscalls.py    system call numbers, and which of them a candidate may make
    seccomp.py     the filter built from them, as data
    landlock.py    which files a candidate may open
    namespaces.py  an empty network, and process numbers of its own
    jail.py        all of it put on, in order, in the child
    wire.py        frames on a pipe
    message.py     the judge's side: a candidate's message, within bounds
    clock.py       the judge's side: the time that a process takes, without the machine's load
    plain.py       values as tagged JSON
    zygote.py      the warm parent
    scratch.py     the private directory: watched, and emptied after each run
    runner.py      the candidate's side: runs a program, or answers calls of a function
    tester.py      the test's side: runs the user's test against a proxy of the candidate
    link.py        the judge's side: the socket to a zygote
    run.py         the judge's side: one run
    worker.py      the judge's side: one zygote and its runs

Theory of operation, the invariants:

 1. The zygote never sees a program, an input or an expected value: they go from the judge to the
    child through pipes whose ends the zygote only passes on. So nothing of one run is in the memory
    that the next one is forked from.
 2. The child says "ready" before any untrusted byte is interpreted, and only when every piece of
    its jail is on. A piece that fails ends the run as broken.
 3. How a run ended (exit code, signal, who killed it) is the zygote's word, on a socket that the
    child does not have. What comes through the child's own pipes is only ever an answer.
 4. A child dies with its zygote (parent-death signal; process namespace where there is one), and a
    zygote with its judge (end of file on the socket; a pidfd of the judge).

The files that run in the zygote import the standard library and one another, nothing else of grv.
"""
