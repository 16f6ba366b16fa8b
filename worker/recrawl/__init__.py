"""A crawl scheduler embedded in Postgres."""
