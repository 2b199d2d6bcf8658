"""Verify changes to a repository: checks of kind "repo".

diffs        reads a candidate: a diff, or whole files in fences
binary       reads the binary form of a git diff
changes      applies it to the files of a commit, in memory
protection   what a candidate may not touch: tests, their configuration, what starts by itself
git          reads a commit, without running anything that the repository names
workspace    the commit on disk, made once, and cheap copies of it
inside       runs the tests; it is the program in the jail
results      reads what it reports, with a secret that candidates do not have
control      the same tests, rewritten so that they must fail: a pass there is a forgery
runners      the commands of pytest, unittest, go, cargo, npm, and commands of one's own
containers   the same in podman or docker
check        puts all of this together
"""
