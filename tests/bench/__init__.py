"""Measures the queue: `python -m bench` prints one table of ratios to a bare UPDATE."""
