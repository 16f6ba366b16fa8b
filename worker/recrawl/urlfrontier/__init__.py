"""URLFrontier's gRPC service over a crawl, for StormCrawler and other crawlers that speak URLFrontier."""

import os

# grpc reads this when it is loaded. With fork support, a process with grpc's threads may crash when it starts another
# process, such as the embedded PostgreSQL (grpcio 1.85).
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # errors that a user can mend have messages of our own
