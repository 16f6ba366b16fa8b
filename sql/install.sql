-- The executable table of contents of sql/. Each file uses only functions and views of the files above it.
--
-- The crawler's loop:
--
--     add_pages ─────────────┐                       take_in/     URLs become pages
--                            ▼
--     next_pages ◀── queue, slots ◀── upkeep         hand_out/    leases pages, a gap apart on each host
--        │ fetch            ▲                        upkeep/      what is new or given back enters the queue
--        ▼                  │
--     report ──▶ due again, rate, links              take_in/     what became of them; when each is due next
--                     │          ▲
--                     ▼          │ prices, values
--                 jobs/ rates · opic · allocate      jobs/        what the worker reads and writes
--
-- Around it:
--
--     people ──▶ settings, due times, hosts          steer/       what a person decides
--     reports, samples ──▶ numbers by the minute     vitals/      also estimates of how much waits
--     tables ──▶ views, explain_page                 show/        for people; writes nothing
--     functions that all others use                  common/      limits, URLs, due times, frequencies, events
--
-- The life of a page:
--
--     add_pages, a link, fetch_now, jobs         next_pages (has locked the host)
--          │                                              │
--          ▼         drain (has locked the host)          ▼
--     ┌─────────┐   ┌─────────────────────────────┐   ┌───────┐   A leased page is in queue too: at its expected next
--     │  inbox  │──▶│ new_page: never handed out  │──▶│ lease │   due time, or after the lease if that is later
--     │         │   │ queue:    by due time       │   │       │   (held_due).
--     └─────────┘   └─────────────────────────────┘   └───────┘
--          ▲                                              │
--          ├── report, if it died or is not due then ─────┤
--          └── release, or the lease has ended ───────────┘
--
-- queue and new_page change only while the row of the host is locked. To write an entry of the inbox locks no host.
-- The files of migrations/versions/0001_first stay as they were released: for the inbox read upkeep/drain.sql, and for
-- columns migrations/README.md.
--
-- NAME_at(t, …) does its work as of the time t. NAME, if there is one, calls it with the present time. Simulations and
-- tests pass other times.
--
-- Where the due time of a page stands:
--
--     the page                      page.due_at      queue or new_page          lease.dues
--     waits among the new pages     null             new_page, by its rank
--     is leased for the first time  null             queue, after the lease     the slot that it got
--     waits for a revisit           its due time     queue, at its due time
--     is leased again               its due time     queue, after the lease     its due time
--     is leased, and fetch_now      the new time     queue, after the lease     its due time before
--
-- «After the lease» is held_due, a time after the end of the lease. The queue follows page.due_at when upkeep applies
-- the inbox.
--
-- Values with a special meaning:
--
--     where                                   value                  meaning
--     host_terms.host_id                      0                      the common terms of all hosts
--     host_terms.price and the like           null                   as the common terms
--     arguments of put_prices()               NaN                    as the common terms; arrays of numpy have no null
--     values of put_values()                  null                   keep the value of the page
--     boosts of put_values()                  null instead of array  keep the boosts of all pages
--     page.due_at                             year 9999 + id µs      never; see never()
--     page.due_at                             null                   it waits among the new pages, or is leased for the
--                                                                    first time
--     turns of judged_results()               null                   each page has one result
--     host.new_class                          32                     its revisits go first; see last_class()
--     inbox                                   null columns           three kinds: see the table in upkeep/drain.sql
--     hosts inside of add_pages()             ''                     the host that was given is invalid
--     ask.only_host                           0                      the host that the caller named is unknown
--     horizons and other cells                1 µs after 1970        never written
--
-- Words of these files that the glossary of the documents does not have:
--
--     cell      a sequence that holds a number: a time, a count or a set of bits. Writing it locks nothing
--     class     new pages whose values differ by less than a factor of two (common/host_queues.sql)
--     credit    how many new pages a host may give before its next revisit
--     drain     to apply entries of the inbox to the queues
--     head      where a scan of the pages of a host begins: a due time, or a rank for new pages. No page is before it
--     horizon   a time before which an index holds only dead entries, so that scans begin there
--     intern    to find the page of a URL, or to make it
--     rank      minus the value of a new page
--     reap      to take back the pages of leases that have ended
--     strike    a block in a row after 429, 503 or failures. Each strike doubles the next block
--     terms     what the last allocation decided for a host: its price and its minimum frequency
--     tick      one small step of upkeep
--
-- Forms that stand here again and again, and what each one is for:
--
--     offset 0                     in a subquery: the planner may not dissolve it. So its expressions are computed
--                                  once, or its table is read by one index look-up for each row
--     (x in (select …)) is true    the set is hashed in memory, and no join is made of it
--     perform f() where c          if c then f()
--     array || '{}'                unpacks a compressed array once, not at each use
--     width_bucket(x, array)       binary search: the place of the last element that is at most x
--     least(…), greatest(…)        ignore nulls
--     where id between x and x order by id desc limit 1
--                                  the row with this id, its newest version first: see plans.sql
--
-- `recrawl migrate` and `alembic upgrade head` run this file again when a file of sql/ has changed. By hand, on a
-- migrated database: psql --single-transaction -f sql/install.sql

-- A name without a schema belongs to PostgreSQL itself or to recrawl_internal. plans.sql sets the same path on each
-- function that is not inlined. So the path of a caller has no effect.
set search_path = recrawl_internal, pg_temp;

\ir roles.sql
\ir rights.sql

-- Small functions that all files below use
\ir common/types.sql
\ir common/limits.sql
\ir common/sample.sql
\ir common/refusals.sql
\ir common/url.sql
\ir common/host_names.sql
\ir common/cells.sql
\ir common/times.sql
\ir common/due_moves.sql
\ir common/host_queues.sql
\ir common/objective.sql
\ir common/rate.sql
\ir common/graph.sql
\ir common/boost.sql
\ir common/words.sql
\ir common/comments.sql
\ir common/settings.sql
\ir common/events.sql

-- Two views for people. Functions read these views too
\ir show/page_status.sql
\ir show/settings.sql

-- The queue's upkeep, by the worker and, a little at a time, by next_pages itself
\ir hand_out/pace.sql
\ir upkeep/horizon.sql
\ir upkeep/host.sql
\ir upkeep/logs.sql
\ir upkeep/reap.sql
\ir upkeep/drain.sql
\ir upkeep/lost_ids.sql
\ir upkeep/clock.sql
\ir upkeep/measure.sql
\ir upkeep/logins.sql

-- Taking in
\ir take_in/row_types.sql
\ir take_in/hosts.sql
\ir take_in/intern_unknown.sql
\ir take_in/intern.sql
\ir take_in/add_pages.sql
\ir take_in/found_links.sql
\ir take_in/moved_back.sql
\ir take_in/checked_results.sql
\ir take_in/comparison.sql
\ir take_in/judge.sql
\ir take_in/judged_results.sql
\ir take_in/record_results.sql
\ir take_in/report.sql
\ir take_in/report_pages.sql
\ir take_in/hint_change.sql
\ir take_in/robots.sql
\ir take_in/claim.sql

-- All steps of upkeep in one
\ir upkeep/tick.sql

-- Handing out
\ir hand_out/row_types.sql
\ir hand_out/hosts_to_visit.sql
\ir hand_out/slots.sql
\ir hand_out/hand_out.sql
\ir hand_out/next_pages.sql
\ir hand_out/next_ready_at.sql
\ir hand_out/blocked_pages.sql
\ir hand_out/leases_of.sql
\ir hand_out/release.sql
\ir hand_out/extend_lease.sql
\ir hand_out/take_slot.sql

-- What the worker reads and writes
\ir jobs/job.sql
\ir jobs/rates.sql
\ir jobs/allocation_input.sql
\ir jobs/prices.sql
\ir jobs/due_times.sql
\ir jobs/capped_hosts.sql
\ir jobs/opic.sql
\ir jobs/due.sql
\ir jobs/failures.sql
\ir jobs/leader.sql

-- A person steers
\ir steer/ask_for_allocation.sql
\ir steer/patterns.sql
\ir steer/fetch_now.sql
\ir steer/set_host.sql
\ir steer/block_host.sql
\ir steer/pause.sql
\ir steer/keep_out.sql
\ir steer/exclude.sql
\ir steer/delete_pages.sql
\ir steer/set_setting.sql
\ir steer/set_rate.sql
\ir steer/set_interval.sql
\ir steer/set_value.sql
\ir steer/boost.sql

-- What happened, minute by minute
\ir vitals/ready.sql
\ir vitals/tail.sql
\ir vitals/samples.sql
\ir vitals/late_hosts.sql
\ir vitals/fold.sql
\ir vitals/take_vitals.sql
\ir vitals/retention.sql

-- Reporting
\ir show/page_of.sql
\ir show/host_status.sql
\ir show/coming.sql
\ir show/crawl_status.sql
\ir show/queue_status.sql
\ir show/vitals.sql
\ir show/hosts.sql
\ir show/events.sql
\ir show/lease_status.sql
\ir show/job_run.sql
\ir show/allocation_run.sql
\ir show/opic_run.sql
\ir show/graph.sql
\ir show/sketch_distance.sql
\ir show/internal_state.sql
\ir show/boosts.sql
\ir show/checkup.sql
\ir show/explain/lease.sql
\ir show/explain/dead.sql
\ir show/explain/holds.sql
\ir show/explain/unknown.sql
\ir show/explain/turn.sql
\ir show/explain/worth.sql
\ir show/explain_page.sql
\ir show/readers.sql

-- How the functions above are planned; and that PUBLIC may not call them
\ir plans.sql
\ir closed.sql

reset search_path;
