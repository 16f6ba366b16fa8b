"""A client of URLFrontier, made of what grpc has: its calls by their names, and messages in a word."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import grpc

from recrawl.urlfrontier import urlfrontier_pb2 as pb

OK, SKIPPED, FAIL = pb.AckMessage.OK, pb.AckMessage.SKIPPED, pb.AckMessage.FAIL


class Frontier:
    def __init__(self, port: int) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.calls: dict[str, Any] = {}
        for method in pb.DESCRIPTOR.services_by_name["URLFrontier"].methods:
            kinds = (
                "stream" if is_stream else "unary" for is_stream in (method.client_streaming, method.server_streaming)
            )
            self.calls[method.name] = getattr(self.channel, "_".join(kinds))(
                f"/urlfrontier.URLFrontier/{method.name}",
                request_serializer=getattr(pb, method.input_type.name).SerializeToString,
                response_deserializer=getattr(pb, method.output_type.name).FromString,
            )

    def close(self) -> None:
        self.channel.close()

    def call(self, name: str, request: Any = None) -> Any:
        return self.calls[name](request if request is not None else pb.Empty(), timeout=300)

    def put(self, *items: pb.URLItem) -> list[tuple[str, int]]:
        """ID and status of each acknowledgement."""
        return [(ack.ID, ack.status) for ack in self.calls["PutURLs"](iter(items), timeout=300)]

    def put_batches(self, *batches: pb.DiscoveredBatch) -> list[pb.BatchAck]:
        return list(self.calls["PutDiscovered"](iter(batches), timeout=300))

    def get(self, queues: int = 100, per_queue: int = 1, held: int = 600, **more: Any) -> list[pb.URLInfo]:
        """URLs. Each is held for this number of seconds: no other call gets it."""
        ask = pb.GetParams(max_queues=queues, max_urls_per_queue=per_queue, delay_requestable=held, **more)
        return list(self.call("GetURLs", ask))

    def status(self, url: str) -> pb.URLItem:
        item: pb.URLItem = self.call("GetURLStatus", pb.URLStatusRequest(url=url))
        return item

    def stats(self, key: str = "", crawl: str = "") -> tuple[int, int, int, int, int]:
        """Not done, in process, done, active queues, queues."""
        found = self.call("GetStats", pb.QueueWithinCrawlParams(key=key, crawlID=crawl))
        counts = found.counts
        return found.size, found.inProcess, counts["completed"], counts["active_queues"], found.numberOfQueues

    def urls(self, **ask: Any) -> list[str]:
        return [item.known.info.url for item in self.call("ListURLs", pb.ListUrlParams(**ask))]


def info(url: str, metadata: dict[str, Iterable[str]] | None = None, key: str = "", crawl: str = "") -> pb.URLInfo:
    lists = {name: pb.StringList(values=values) for name, values in (metadata or {}).items()}
    return pb.URLInfo(url=url, key=key, metadata=lists, crawlID=crawl)


def discovered(url: str, ID: str = "", **more: Any) -> pb.URLItem:
    return pb.URLItem(discovered=pb.DiscoveredURLItem(info=info(url, **more)), ID=ID)


def known(url: str, when: datetime | int, ID: str = "", **more: Any) -> pb.URLItem:
    seconds = when if isinstance(when, int) else int(when.timestamp())
    return pb.URLItem(known=pb.KnownURLItem(info=info(url, **more), refetchable_from_date=seconds), ID=ID)
