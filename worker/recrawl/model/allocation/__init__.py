"""How often pages are fetched: the price of every host, and the frequencies that follow from it.

jobs/allocation_input.py ──▶ new_pages.divided: how much of the budget new pages take. It asks again and again:
  ──▶ pins.allocate_beside: pinned pages come first
  ──▶ the answer of a policy (model/policies)
  ──▶ solve.allocate: one price for the rest ──▶ passes.py: the compiled loops over pages and hosts
"""
