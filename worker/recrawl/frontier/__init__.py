"""URLFrontier's gRPC service over a crawl: for StormCrawler, and other crawlers that speak it."""
