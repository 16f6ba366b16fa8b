"""Every call of URLFrontier, over the crawls of a service. docs/urlfrontier.md lists the differences to URLFrontier."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import count
from math import ceil
from typing import Any

import grpc
import psycopg
from google.protobuf.message import DecodeError, Message
from grpc import aio

from recrawl.client import Error
from recrawl.client.database import GaveUp, one_line
from recrawl.urlfrontier import urlfrontier_pb2 as pb
from recrawl.urlfrontier.crawl_database import CrawlDatabase
from recrawl.urlfrontier.crawls import DEFAULT, Crawls, UnknownCrawl
from recrawl.urlfrontier.items import Put, as_taken_in, discovered, info_of, item_of, put_of
from recrawl.urlfrontier.puts import FAIL, SKIPPED, Ack
from recrawl.urlfrontier.stream import Stream, Unreadable, readable
from recrawl.words import in_url

log = logging.getLogger("recrawl.urlfrontier")

HELD = 30  # seconds, if the client gives no delay_requestable
MOST_QUEUES = 1000  # per call, if the client sets no limit
MOST = 10_000  # of queues, and of URLs of each, per call
PAGE = 100  # rows of a list, if the client gives no size
LEVELS = {0: logging.DEBUG, 1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}

Context = Any  # aio.ServicerContext of the call's messages


class Service:
    def __init__(self, crawls: Crawls, node: str, client_sets_dates: bool) -> None:
        self._crawls = crawls
        self._node = node
        self._client_sets_dates = client_sets_dates
        self._turn = count()  # counts the calls of GetURLs that name no crawl

    async def PutURLs(self, _requests: object, context: Context) -> None:
        await Stream(context).run(self._take_item)

    async def PutDiscovered(self, _requests: object, context: Context) -> None:
        await Stream(context).run(self._take_batch)

    async def _take_item(self, stream: Stream, item: pb.URLItem) -> None:
        info = item.known.info if item.WhichOneof("item") == "known" else item.discovered.info
        name = item.ID or info.url

        def ack(status: pb.AckMessage.Status) -> None:
            stream.answer(pb.AckMessage(ID=name, status=status), weight)

        weight = max(1, item.ByteSize() // 1000)
        stream.owe(weight)
        await self._take(info, put_of(item, self._client_sets_dates), ack)

    async def _take_batch(self, stream: Stream, batch: pb.DiscoveredBatch) -> None:
        weight = max(1, len(batch.items), batch.ByteSize() // 1000)
        stream.owe(weight)
        statuses: list[pb.AckMessage.Status] = [FAIL] * len(batch.items)
        left = len(batch.items)

        def ack_of(place: int) -> Ack:
            def ack(status: pb.AckMessage.Status) -> None:
                nonlocal left
                statuses[place] = status
                left -= 1
                if not left:
                    stream.answer(pb.BatchAck(ID=batch.ID, statuses=statuses), weight)

            return ack

        if not batch.items:  # clients send empty batches to see whether the service is there
            stream.answer(pb.BatchAck(ID=batch.ID), weight)
        for place, info in enumerate(batch.items):
            await self._take(info, discovered(info), ack_of(place))

    async def _take(self, info: pb.URLInfo, put: Put | None, ack: Ack) -> None:
        """Hands the put to its crawl. Answers a put itself if it can never be taken in, or its crawl cannot be made."""
        if put is None:
            ack(SKIPPED)
            return
        try:
            puts = await self._crawls.puts(info.crawlID)
        except UnknownCrawl as error:
            ack(SKIPPED)
            log.warning("%s", error)
        except (GaveUp, Error, psycopg.Error):
            ack(FAIL)
        else:
            puts.put(put, ack)

    async def GetURLs(self, ask: pb.GetParams, context: Context) -> None:
        """Writes URLs of at most max_queues queues. Crawls share the queues equally. A crawl that has too few leaves
        the rest of its share to the crawls after it."""
        queues = min(ask.max_queues or MOST_QUEUES, MOST)
        urls = min(ask.max_urls_per_queue or MOST, MOST)
        crawls = await self._asked(ask)
        for place, crawl in enumerate(crawls):
            share = ceil(queues / (len(crawls) - place))
            try:
                pages = await crawl.next_pages(share, urls, ask.delay_requestable or HELD, ask.key) if share > 0 else []
            except psycopg.errors.InvalidParameterValue:  # no host can have this key, or another argument is refused
                if ask.key:
                    return
                raise
            given = len({page.host for page in pages})
            crawl.has_too_few = given < share
            queues -= given
            for page in pages:
                await context.write(info_of(page.url, page.host, page.meta, crawl.name))

    async def _asked(self, ask: pb.GetParams) -> list[CrawlDatabase]:
        """The crawl that is named, otherwise all crawls. Crawls that had too few queues come first. The others begin
        with another crawl at each call. With a key and without a crawlID: no crawl."""
        if ask.WhichOneof("item") == "crawlID":
            crawl = await self._known(ask.crawlID)
            return [crawl] if crawl else []
        crawls = deque([] if ask.key else await self._crawls.all())
        crawls.rotate(-next(self._turn))
        return sorted(crawls, key=lambda crawl: not crawl.has_too_few)

    async def _known(self, name: str) -> CrawlDatabase | None:
        """None if it does not exist. It then counts as empty, except in GetURLStatus and SetCrawlLimit."""
        try:
            return await self._crawls.crawl(name)
        except UnknownCrawl:
            return None

    async def GetURLStatus(self, ask: pb.URLStatusRequest, context: Context) -> pb.URLItem:
        crawl = await self._crawls.crawl(ask.crawlID)
        page = await crawl.page(as_taken_in(ask.url))
        if page is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such URL")
        return item_of(page, crawl.name)

    async def ListURLs(self, ask: pb.ListUrlParams, context: Context) -> None:
        if crawl := await self._known(ask.crawlID):
            async for page in crawl.pages(ask.key, ask.start, ask.size or PAGE, ask.filter, ask.ignoreCase):
                await context.write(item_of(page, crawl.name))

    async def CountURLs(self, ask: pb.CountUrlParams, _context: Context) -> pb.Long:
        crawl = await self._known(ask.crawlID)
        return pb.Long(value=await crawl.count(ask.key, ask.filter, ask.ignoreCase) if crawl else 0)

    async def PurgeURLs(self, ask: pb.PurgeUrlParams, _context: Context) -> pb.Long:
        crawl = await self._known(ask.crawlID)
        age = timedelta(days=min(ask.days, 1_000_000))
        return pb.Long(value=await crawl.purge(ask.key, age) if crawl else 0)

    async def ListQueues(self, ask: pb.Pagination, _context: Context) -> pb.QueueList:
        crawl = await self._known(ask.crawlID)
        hosts = await crawl.hosts(ask.start, ask.size or PAGE, ask.include_inactive) if crawl else []
        return pb.QueueList(values=hosts, start=ask.start, size=len(hosts), crawlID=ask.crawlID or DEFAULT)

    async def GetStats(self, ask: pb.QueueWithinCrawlParams, _context: Context) -> pb.Stats:
        crawl = await self._known(ask.crawlID)
        if not crawl:
            return pb.Stats(crawlID=ask.crawlID, counts={"completed": 0, "active_queues": 0})
        found = await crawl.stats(ask.key)
        return pb.Stats(
            size=found.waiting, inProcess=found.leased, numberOfQueues=found.hosts, crawlID=crawl.name,
            counts={"completed": found.done, "active_queues": found.active_hosts},
        )  # fmt: skip

    async def SetDelay(self, ask: pb.QueueDelayParams, _context: Context) -> pb.Empty:
        crawl = await self._known(ask.crawlID)
        if crawl and not ask.key:
            await crawl.set_default_delay(ask.delay_requestable)
        elif crawl and await crawl.knows(ask.key):
            await crawl.set_delay(ask.key, ask.delay_requestable)
        else:
            log.warning("SetDelay changes nothing: there is no queue %s", ask.key[:200])
        return pb.Empty()

    async def BlockQueueUntil(self, ask: pb.BlockQueueParams, _context: Context) -> pb.Empty:
        crawl = await self._known(ask.crawlID)
        if crawl and await crawl.knows(ask.key):
            await crawl.block(ask.key, ask.time)
        else:
            log.warning("BlockQueueUntil changes nothing: there is no queue %s", ask.key[:200])
        return pb.Empty()

    async def SetCrawlLimit(self, ask: pb.CrawlLimitParams, context: Context) -> pb.Empty:
        crawl = await self._crawls.crawl(ask.crawlID)
        if not await crawl.knows(ask.key):
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no such queue: {ask.key[:200]}")
        await crawl.limit(ask.key, min(ask.limit, 2**31 - 1))
        return pb.Empty()

    async def DeleteQueue(self, ask: pb.QueueWithinCrawlParams, _context: Context) -> pb.Long:
        crawl = await self._known(ask.crawlID)
        return pb.Long(value=await crawl.delete(ask.key) if crawl and ask.key else 0)

    async def ListCrawls(self, _ask: pb.Local, _context: Context) -> pb.StringList:
        return pb.StringList(values=await self._crawls.names())

    async def DeleteCrawl(self, ask: pb.DeleteCrawlMessage, _context: Context) -> pb.Long:
        crawl = await self._known(ask.value)
        return pb.Long(value=await crawl.delete("") if crawl else 0)

    async def ListNodes(self, _ask: pb.Empty, _context: Context) -> pb.StringList:
        return pb.StringList(values=[self._node])

    async def SetActive(self, ask: pb.Active, _context: Context) -> pb.Empty:
        for crawl in await self._crawls.all():
            await crawl.pause(not ask.state)
        return pb.Empty()

    async def GetActive(self, _ask: pb.Local, _context: Context) -> pb.Boolean:
        return pb.Boolean(state=not any([await crawl.is_paused() for crawl in await self._crawls.all()]))

    async def SetLogLevel(self, ask: pb.LogLevelParams, context: Context) -> pb.Empty:
        if ask.level not in LEVELS:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no such level: {ask.level}")
        logging.getLogger(ask.package or None).setLevel(LEVELS[ask.level])
        return pb.Empty()


def handlers(service: Service) -> grpc.GenericRpcHandler:
    """One handler per call. The proto says which messages the call has."""
    of_call: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for method in pb.DESCRIPTOR.services_by_name["URLFrontier"].methods:
        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[method.client_streaming, method.server_streaming]
        of_call[method.name] = make(
            refusing(getattr(service, method.name)),
            request_deserializer=reader(getattr(pb, method.input_type.name)),
            response_serializer=getattr(pb, method.output_type.name).SerializeToString,
        )
    return grpc.method_handlers_generic_handler("urlfrontier.URLFrontier", of_call)


def reader(kind: type[Message]) -> Callable[[bytes], Message | None]:
    """Returns None for a message that cannot be read: an exception would put a traceback of grpc into the log."""

    def read(sent: bytes) -> Message | None:
        try:
            return kind.FromString(sent)
        except DecodeError:
            return None

    return read


def refusing(answer: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
    """The call, with its errors as status codes. A call with a stream of answers writes them to its context."""

    async def call(ask: Any, context: Context) -> Any:
        try:
            return await answer(readable(ask), context)
        except Exception as error:
            await refuse(error, context)

    return call


async def refuse(error: Exception, context: Context) -> None:
    """Answers an expected error with its status code and one line. Raises every other error."""
    codes: list[tuple[type[Exception] | tuple[type[Exception], ...], grpc.StatusCode]] = [
        (Unreadable, grpc.StatusCode.INVALID_ARGUMENT),
        (UnknownCrawl, grpc.StatusCode.NOT_FOUND),
        (psycopg.errors.InsufficientPrivilege, grpc.StatusCode.PERMISSION_DENIED),
        (psycopg.DataError, grpc.StatusCode.INVALID_ARGUMENT),
        ((GaveUp, Error, psycopg.Error), grpc.StatusCode.UNAVAILABLE),
    ]
    for kind, code in codes:
        if isinstance(error, kind):
            await context.abort(code, one_line(error) or "the database is away")
    raise error


async def serve(crawls: Crawls, host: str, port: int, client_sets_dates: bool) -> tuple[aio.Server, int]:
    """Starts the server. Returns it and its port. Raises OSError if the port is taken."""
    address = in_url(host)
    server = aio.server(options=[("grpc.so_reuseport", 0)])
    try:
        bound = server.add_insecure_port(f"{address}:{port}")
    except RuntimeError:
        raise OSError(f"cannot listen on {address}:{port}: it is taken, or no address of this machine") from None
    server.add_generic_rpc_handlers([handlers(Service(crawls, f"{address}:{bound}", client_sets_dates))])
    await server.start()
    return server, bound
