"""URLFrontier's gRPC service over a crawl: for StormCrawler, and other crawlers that speak it."""

import os

# Read by grpc when it is loaded. With it, a process that grpc's threads run in may crash when it starts another one, as
# the embedded PostgreSQL does (grpcio 1.85).
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what a user can do something about is said here in words
