"""Numbers that SQL and Python must agree on: sql/words/ has the same, and a test reads both."""

# How often a page may be fetched per day: times can hold intervals of ten thousand days.
LEAST_FREQUENCY, MOST_FREQUENCY = 1e-4, 86400.0

# How far, relatively, a page's weight may be from the price and still count as equal to it: further than a price may be
# off that was found between two that buy too much and too little (1e-10).
EQUAL = 3e-10

# Scores and values are written where they moved by this share.
MOVED = 0.01

# What is believed of a page's rate before anything is known: as if so many changes had been seen in so many days. That
# is .2 changes a day on average, and nine pages in ten between .0035 and .68.
FIRST_CHANGES, FIRST_DAYS = 0.7, 3.5

# The relevance of a page of which none is known.
UNKNOWN_RELEVANCE = 0.5
