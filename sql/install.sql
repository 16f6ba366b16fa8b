-- The executable table of contents of sql/. `recrawl migrate` and `alembic upgrade head` replay it whenever a file changed;
-- by hand, on a migrated database: psql -f sql/install.sql

-- Group: words everything below uses
\ir url.sql
\ir schedule.sql
\ir objective.sql
\ir rate.sql
\ir graph.sql
\ir horizon.sql
\ir checks.sql

-- Group: the queue's upkeep, by the worker and, a little at a time, by next_pages itself
\ir host.sql
\ir reap.sql
\ir drain.sql
\ir fetch_log.sql
\ir tick.sql

-- Group: handing out
\ir next_pages.sql
\ir next_ready_at.sql
\ir release.sql
\ir extend_lease.sql

-- Group: taking in
\ir intern.sql
\ir add_pages.sql
\ir found_links.sql
\ir checked_results.sql
\ir report.sql
\ir report_pages.sql
\ir hint_change.sql

-- Group: the operator's controls
\ir fetch_now.sql
\ir set_host.sql
\ir block_host.sql
\ir pause.sql
\ir exclude.sql
\ir forget.sql
\ir set_setting.sql
\ir set_rate.sql
\ir set_value.sql

-- Group: what the worker finds out, put in force
\ir job.sql
\ir host_terms.sql
\ir page_score.sql

-- Group: reporting
\ir page_status.sql
\ir host_status.sql
\ir queue_status.sql
\ir lease_status.sql
\ir job_run.sql
\ir opic_run.sql
\ir linked_pages.sql
\ir sketch_distance.sql
\ir settings.sql

-- Group: who may do what
\ir roles.sql
