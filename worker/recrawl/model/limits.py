"""Numbers that SQL and Python must agree on. In SQL they are in sql/common/, except FIRST_CHANGES and FIRST_DAYS:
version 0001 writes them into host_terms. A test compares them."""

# The least and the most fetches of a page per day: one in ten thousand days, and one a second.
LEAST_FREQUENCY, MOST_FREQUENCY = 1e-4, 86400.0

# A page's weight (see allocation/__init__.py) counts as equal to the price up to this relative distance. It is larger
# than the error of a price: the search for a price ends with two prices that differ by at most 1e-10. The lower buys
# too much, the higher too little.
EQUAL = 3e-10

# A score or value is written if it moved by more than this share.
MOVED = 0.01

# The belief about a page's rate before anything is known: as if 0.7 changes had been seen in 3.5 days. The mean is 0.2
# changes a day, and nine pages in ten are believed to lie between 0.0035 and 0.68.
FIRST_CHANGES, FIRST_DAYS = 0.7, 3.5

# The relevance of a page whose relevance is not known.
UNKNOWN_RELEVANCE = 0.5
