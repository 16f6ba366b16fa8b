"""Numerics: numpy in, numpy out. It imports nothing else of recrawl. Only compiled.py touches files: the cache of
compiled code."""
