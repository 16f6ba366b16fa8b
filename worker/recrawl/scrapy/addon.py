"""The add-on replaces a project's scheduler and downloader, and switches some of Scrapy's middlewares off."""

import logging
import os

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings
from twisted.web.client import HTTPConnectionPool

log = logging.getLogger("recrawl.scrapy")

REPLACED = {"SCHEDULER": "recrawl.scrapy.scheduler.Scheduler", "DOWNLOADER": "recrawl.scrapy.downloader.Downloader"}
MIDDLEWARES = {
    # Nearest to the engine: after it, no other middleware removes a request that a callback returned.
    "SPIDER_MIDDLEWARES": {"recrawl.scrapy.middleware.Reading": -1000},
    # Last before the request goes out.
    "DOWNLOADER_MIDDLEWARES": {"recrawl.scrapy.middleware.Starting": 100_000},
}
# These middlewares would send a second request outside of the page's slot, or no request at all. recrawl itself follows
# redirects, tries pages again and obeys robots.txt. Meta refreshes are not followed, and there is no HTTP cache. The
# list names the middlewares by import path, because Scrapy 2.13 accepts nothing else.
SWITCHED_OFF = [
    "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware",
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware",
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware",
    "scrapy.downloadermiddlewares.retry.RetryMiddleware",
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware",
]
PRIORITY = 100  # of settings that the project must not override; the command line has 40
DEFAULTS = {
    # Seconds without anything to fetch, after which the spider closes; None = it never closes. The default is longer
    # than each of the first two blocks of a host that answers 429 or 503: 60 s and 120 s, and 10 % more or less.
    "RECRAWL_IDLE": 150,
    "RECRAWL_LEASE": 600,  # seconds after which the pages of a process that died come back
}


class Addon:
    def update_settings(self, settings: BaseSettings) -> None:
        if not settings.getbool("RECRAWL_ENABLED", True):
            raise NotConfigured("RECRAWL_ENABLED is off")
        # If a server closes a connection that was used before, Twisted would send the request again immediately.
        HTTPConnectionPool.retryAutomatically = False
        for name, value in DEFAULTS.items():
            settings.setdefault(name, value, "addon")
        if not settings.get("RECRAWL_DSN"):
            settings.set("RECRAWL_DSN", os.environ.get("DATABASE_URL"), PRIORITY)
        for name, path in REPLACED.items():
            if (settings.getpriority(name) or 0) > 0:
                log.warning("recrawl replaces the setting %s; it was %s", name, settings[name])
            settings.set(name, path, PRIORITY)
        for name, components in MIDDLEWARES.items():
            for path, order in components.items():
                settings[name].set(path, order, PRIORITY)
        for path in SWITCHED_OFF:
            settings["DOWNLOADER_MIDDLEWARES"].set(path, None, PRIORITY)
