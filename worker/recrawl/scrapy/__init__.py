"""Scrapy's projects on recrawl, unchanged: `ADDONS = {"recrawl.scrapy.Addon": 500}` and `RECRAWL_DSN`."""

from recrawl.scrapy.addon import Addon

__all__ = ["Addon"]
