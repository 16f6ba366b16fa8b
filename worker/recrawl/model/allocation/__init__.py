"""How often pages are fetched: the price of every host, and what follows from it."""
