"""How often pages are fetched: the price of every host, and the frequencies that follow from it.

jobs/allocation_input.py ──▶ new_pages.split_budget: how much of the budget new pages take. It asks again and again:
  ──▶ pins.allocate_beside: pinned pages come first
  ──▶ the answer of a policy (model/policies)
  ──▶ solve.allocate: one price for the rest ──▶ passes.py: the compiled loops over pages and hosts

The same words have the same units in all files:

    value                 no unit: how much the page counts
    rate λ                changes per day of a page
    frequency             fetches per day of a page
    floor, ceiling        the least and the greatest frequency of a page
    cap                   the most fetches per day of a host: its slots
    budget, demand, spent fetches per day of all pages of a host or of the crawl
    utility               the goal that the objective names; for freshness: value · share of time that the copy is fresh
    marginal utility      utility that one more fetch per day of a page would bring
    price                 utility per fetch per day; a page is fetched until its marginal utility is the price
    weight W              in frequency = rate·G(price/W). For freshness W = value/rate: no fetch at this price or above
    u                     changes per fetch: rate/frequency
    share                 fetches per change: 1/u
"""
