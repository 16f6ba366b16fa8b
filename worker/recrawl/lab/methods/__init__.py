"""The methods of the papers, each as its authors have it: to be read against them, and to judge the fast way by.

Nothing here is used in production, and nothing here uses it but for how visits are kept (change/estimators.py). Each
file is one method; those that decide how often pages are visited have a function `solve(value, rate, budget, …)` that
returns the fetches per day of every page.
"""
