"""Where the crawl lives: the embedded PostgreSQL, migrations, where their files are."""
