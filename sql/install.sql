-- The executable table of contents of sql/.
--
-- The crawler's loop:
--
--     add_pages ─────────────┐                       take_in/     URLs become pages
--                            ▼
--     next_pages ◀── queue, slots ◀── upkeep         hand_out/    pages, leased, each host's a gap apart
--        │ fetch            ▲                        upkeep/      what is new or given back enters the queue
--        ▼                  │
--     report ──▶ due again, rate, links              take_in/     what became of them; when each is due next
--                     │          ▲
--                     ▼          │ prices, values
--                 jobs/ rates · opic · allocate      jobs/        what the worker reads, and puts in force
--
-- `recrawl migrate` and `alembic upgrade head` replay it whenever a file changed; by hand, on a migrated database:
-- psql -f sql/install.sql

\ir roles.sql

-- What everything below speaks in
\ir words/limits.sql
\ir words/refusals.sql
\ir words/url.sql
\ir words/times.sql
\ir words/lines.sql
\ir words/objective.sql
\ir words/rate.sql
\ir words/graph.sql
\ir words/comments.sql

-- The queue's upkeep, by the worker and, a little at a time, by next_pages itself
\ir upkeep/horizon.sql
\ir upkeep/host.sql
\ir upkeep/reap.sql
\ir upkeep/drain.sql
\ir upkeep/fetch_log.sql
\ir upkeep/tick.sql

-- Handing out
\ir hand_out/pace.sql
\ir hand_out/hosts_to_visit.sql
\ir hand_out/slots.sql
\ir hand_out/hand_out.sql
\ir hand_out/next_pages.sql
\ir hand_out/next_ready_at.sql
\ir hand_out/release.sql
\ir hand_out/extend_lease.sql

-- Taking in
\ir take_in/intern_unknown.sql
\ir take_in/intern.sql
\ir take_in/add_pages.sql
\ir take_in/found_links.sql
\ir take_in/checked_results.sql
\ir take_in/matched_results.sql
\ir take_in/judged_results.sql
\ir take_in/record_results.sql
\ir take_in/report.sql
\ir take_in/report_pages.sql
\ir take_in/hint_change.sql

-- A person steers
\ir steer/fetch_now.sql
\ir steer/set_host.sql
\ir steer/block_host.sql
\ir steer/pause.sql
\ir steer/exclude.sql
\ir steer/forget.sql
\ir steer/set_setting.sql
\ir steer/set_rate.sql
\ir steer/set_value.sql

-- What the worker reads, and what it finds out put in force
\ir jobs/job.sql
\ir jobs/settings.sql
\ir jobs/rates.sql
\ir jobs/allocate.sql
\ir jobs/graph.sql
\ir jobs/opic.sql

-- Reporting
\ir show/page_status.sql
\ir show/host_status.sql
\ir show/queue_status.sql
\ir show/lease_status.sql
\ir show/job_run.sql
\ir show/allocation_run.sql
\ir show/opic_run.sql
\ir show/graph.sql
\ir show/sketch_distance.sql
\ir show/settings.sql

-- How the functions above are planned; and that nobody else may call them
\ir plans.sql
\ir closed.sql
