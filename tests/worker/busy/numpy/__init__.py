"""A module that computes forever, and lets no other thread of its process run for seconds."""

while True:
    busy = 3**10_000_000
