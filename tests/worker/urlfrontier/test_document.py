"""docs/urlfrontier.md from its start: service, worker, a dump from URLFrontier, and a client like StormCrawler."""

import gzip
import re
import time
from pathlib import Path

from google.protobuf import json_format

from docs.reader import Reader, blocks
from helpers import eventually
from recrawl.urlfrontier import urlfrontier_pb2 as pb
from worker.urlfrontier.client import OK, Frontier, discovered, info, known

DOCUMENT = Path(__file__).parents[3] / "docs" / "urlfrontier.md"
LEASE = 300  # seconds, as StormCrawler's topologies ask for
DAY = 86400


def test_from_nothing_to_a_crawl_of_stormcrawlers(open_folder: Path, tmp_path: Path) -> None:
    commands = "".join(said for language, said in blocks(DOCUMENT.read_text()) if language == "sh")
    serves, works, adds = commands.splitlines()
    reader = Reader(tmp_path, open_folder / "frontier-started")
    with reader.leaves_running(serves.replace(":7071", ":0")) as said:
        found = eventually(lambda: re.search(r"127\.0\.0\.1:(\d+)", said.read_text()))
        assert found
        with reader.leaves_running(works) as working:
            eventually(lambda: "at work" in working.read_text())
            frontier = Frontier(int(found[1]))
            a_dump_comes_along(frontier, reader, adds)
            a_topology_crawls(frontier)
            frontier.close()


def a_dump_comes_along(frontier: Frontier, reader: Reader, adds: str) -> None:
    """Completed URLs stay completed."""
    done = known("http://done.example/", 0)
    later = known("http://later.example/", int(time.time()) + DAY, metadata={"depth": ["3"]})
    dump = [json_format.MessageToJson(item, indent=None) for item in (done, later, discovered("http://a.example/"))]
    (reader.folder / "urls.json.gz").write_bytes(gzip.compress("\n".join(dump).encode()))
    assert "3 new" in reader.says(adds)
    for item in (done, later):
        kept = frontier.status(item.known.info.url).known
        assert kept.refetchable_from_date == item.known.refetchable_from_date
        assert kept.info.metadata == item.known.info.metadata


def a_topology_crawls(frontier: Frontier) -> None:
    """Its spout asks, its status updater puts what was fetched and what was found there."""
    ask = pb.GetParams(max_queues=10, max_urls_per_queue=10, delay_requestable=LEASE)
    seen: list[str] = []
    while len(seen) < 3:
        for page in eventually(lambda: list(frontier.call("GetURLs", ask))):
            seen.append(page.url)
            link = pb.URLItem(discovered=pb.DiscoveredURLItem(info=info(f"http://a.example/{len(seen)}")))
            fetched = known(page.url, int(time.time()) + DAY)
            assert [status for _, status in frontier.put(fetched, link)] == [OK, OK]
    assert seen == ["http://a.example/", "http://a.example/1", "http://a.example/2"]
