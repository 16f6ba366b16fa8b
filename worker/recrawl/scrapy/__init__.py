"""Runs Scrapy projects on recrawl. A project needs the setting `ADDONS = {"recrawl.scrapy.Addon": 500}`, and the URL of
its database as the setting `RECRAWL_DSN` or in the environment as DATABASE_URL."""

from recrawl.scrapy.addon import Addon

__all__ = ["Addon"]
