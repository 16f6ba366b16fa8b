"""Runs Scrapy projects on recrawl. A project needs two settings: `ADDONS = {"recrawl.scrapy.Addon": 500}` and
`RECRAWL_DSN`."""

from recrawl.scrapy.addon import Addon

__all__ = ["Addon"]
