"""How often pages are fetched: the price of every host, and the frequencies that follow from it."""
