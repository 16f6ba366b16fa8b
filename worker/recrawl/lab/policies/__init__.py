"""Policies that only the laboratory can follow: one file per policy. registry.py says why, and lists them."""
