"""The methods of the papers, one file each, as their authors describe them. Tests compare production with them.

Production does not import them. They use production's graph, and the log of visits in likelihood.py. A method that
decides how often pages are visited has a function `solve(value, rate, budget, …)`. It returns the fetches per day of
every page.
"""
