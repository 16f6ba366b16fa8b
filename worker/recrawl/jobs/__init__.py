"""The jobs: what the worker does again and again, and `recrawl run` once. registry.py lists them, one file each."""
