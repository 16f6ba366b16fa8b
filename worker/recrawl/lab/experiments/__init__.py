"""The experiments of the literature, done again. A file an experiment; registry.py says which there are."""
