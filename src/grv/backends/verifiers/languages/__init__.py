"""Programs in any language: how they are read, built and run.

sources.py     the program in a candidate's text
toolchains.py  the compilers and interpreters of this machine, and what their jail grants them
building.py    builds a program in the jail, once
"""
