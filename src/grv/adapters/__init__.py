"""grv inside other frameworks: one thin module for each, which imports its framework when used.

    grv.adapters.NAME    is the module for the framework NAME

An adapter translates values. It decides nothing, and has no loop, retry or record of its own.
"""
