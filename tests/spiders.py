"""A Scrapy project as `scrapy startproject` makes it, with one setting more, and processes that crawl with it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

SETTINGS = """
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
NEWSPIDER_MODULE = "shop.spiders"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1
FEED_EXPORT_ENCODING = "utf-8"

ADDONS = {"recrawl.scrapy.Addon": 500}
"""
# Other results of a test: the start of each request, by the clock of its process; the items and stats in files.
OF_TESTS = """
import time
USER_AGENT = "shop-bot"
TELNETCONSOLE_ENABLED = False
STATS_CLASS = "shop.seen.Stats"
DOWNLOADER_MIDDLEWARES = {"shop.seen.Began": 1_000_000}
DOWNLOAD_TIMEOUT = 60
LOG_LEVEL = "INFO"
"""
SEEN = """
import json, os, time
from scrapy.statscollectors import MemoryStatsCollector


class Began:
    def process_request(self, request, spider=None):
        request.headers["X-Began"] = str(time.monotonic())


class Stats(MemoryStatsCollector):
    def _persist_stats(self, stats, spider=None):
        with open(f"stats-{os.getpid()}.json", "w") as file:
            json.dump(stats, file, default=str)
"""


class Project:
    """Its spiders are given as source; those that crawl are processes of their own."""

    def __init__(self, folder: Path, dsn: str, settings: str = "", **spiders: str) -> None:
        self.folder, self.dsn = folder, dsn
        (folder / "shop" / "spiders").mkdir(parents=True)
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
        (folder / "shop" / "seen.py").write_text(SEEN)
        (folder / "shop" / "settings.py").write_text(SETTINGS + OF_TESTS + dedent(settings))
        for name, text in spiders.items():
            (folder / "shop" / "spiders" / f"{name}.py").write_text(f"import scrapy\n{dedent(text)}")
        self.crawlers: list[Crawler] = []

    def command(self, spider: str, **options: object) -> list[str]:
        options = {"RECRAWL_DSN": self.dsn, "RECRAWL_IDLE": 60, **options}
        said = [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
        return [sys.executable, "-m", "scrapy", "crawl", spider, *said]

    def start(self, spider: str, **options: object) -> "Crawler":
        log = self.folder / f"log-{len(self.crawlers)}.txt"
        with log.open("w") as file:
            process = subprocess.Popen(
                self.command(spider, **options),
                cwd=self.folder,
                env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"}  # the tests' server
                | {"no_proxy": "*", "PYTHONWARNINGS": "default"},
                stdout=file,
                stderr=file,
            )
        self.crawlers.append(Crawler(process, log))
        return self.crawlers[-1]

    def run(self, spider: str, seconds: float = 180, **options: object) -> "Crawler":
        """Until it closes by itself."""
        crawler = self.start(spider, **options)
        crawler.ends(seconds)
        return crawler

    def items(self) -> list[dict[str, Any]]:
        """Of the last run with a feed."""
        found: list[dict[str, Any]] = json.loads((self.folder / "items.json").read_text())
        return found

    def end(self) -> None:
        for crawler in self.crawlers:
            if crawler.process.poll() is None:
                crawler.process.kill()
                crawler.process.wait()


class Crawler:
    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process, self._log = process, log

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._log.parent / f"stats-{self.process.pid}.json").read_text())
        return found

    @property
    def errors(self) -> list[str]:
        """The errors and warnings in its log."""
        return re.findall(r"^.*(?:ERROR: |CRITICAL: |Traceback|Warning: ).*$", self.log, re.MULTILINE)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def ends(self, seconds: float = 180) -> None:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it did not end:\n{self.log}") from None
