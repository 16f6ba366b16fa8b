"""Numerics: numpy in, numpy out. Nothing of the rest of recrawl. Only compiled.py touches files: the cache of compiled
code."""
