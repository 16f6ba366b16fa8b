"""gRPC in Python and nothing behind it: the least cost of taking URLs and handing them out, for any service.

Each put is acknowledged when it is read. Every GetURLs gets the same hundred URLs.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
from grpc import aio

from recrawl.urlfrontier import urlfrontier_pb2 as pb
from worker.urlfrontier.client import OK, info

METADATA: dict[str, Iterable[str]] = {"url.path": ["http://h1.example/"], "depth": ["3"]}
HUNDRED = [info(f"http://h{n}.example/{n}", key=f"h{n}.example", metadata=METADATA) for n in range(100)]


async def put_urls(items: AsyncIterator[pb.URLItem], _context: Any) -> AsyncIterator[pb.AckMessage]:
    async for item in items:
        yield pb.AckMessage(ID=item.ID or item.discovered.info.url, status=OK)


async def put_discovered(batches: AsyncIterator[pb.DiscoveredBatch], _context: Any) -> AsyncIterator[pb.BatchAck]:
    async for batch in batches:
        yield pb.BatchAck(ID=batch.ID, statuses=[OK] * len(batch.items))


async def get_urls(_ask: pb.GetParams, _context: Any) -> AsyncIterator[pb.URLInfo]:
    for each in HUNDRED:
        yield each


async def serve() -> None:
    server = aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    of_call: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "PutURLs": grpc.stream_stream_rpc_method_handler(
            put_urls, pb.URLItem.FromString, pb.AckMessage.SerializeToString
        ),
        "PutDiscovered": grpc.stream_stream_rpc_method_handler(
            put_discovered, pb.DiscoveredBatch.FromString, pb.BatchAck.SerializeToString
        ),
        "GetURLs": grpc.unary_stream_rpc_method_handler(
            get_urls, pb.GetParams.FromString, pb.URLInfo.SerializeToString
        ),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("urlfrontier.URLFrontier", of_call)])
    await server.start()
    print(f"gRPC alone is at 127.0.0.1:{port};", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve())
