"""The experiments of the literature, done again: one file per experiment. registry.py lists them."""
