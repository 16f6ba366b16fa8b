"""Inbox entries no longer say where pages belong. Locks: inbox, host, lease, page, job, setting, opic and others.

The other tables are allocation, budget_step, pulse, fetch_log, graph_news, graph_state, link_later, page_score,
pulling_in, vital and vital_hour.

The inbox loses new_due and new_rank: an entry says where its page was. Where the page belongs stands only in its row of
page. allocation loses worth, because nothing reads it any more. The new sequence host_ask_count counts calls that a
measured budget leaves out. The new table moved_back has pages that their sites moved back. With the new index
host_blocked, a report sees quickly that none of its hosts is or was blocked. Each run of the job opic reads the whole
graph. So graph_news, opic.is_full and the setting memory go: they were for a worker that keeps a copy of the graph.
fetch_log and the setting keep_log go: only the command recrawl audit read the log. Two columns of graph_state are not
used any more. They stay, because a report reads the table and fails if it waits 300 ms for a lock on it. The column
page_id of link_later is not used any more, and stays for the same reason: upkeep adds the page of a URL that was set
aside, and not the link. The setting default_gap_since goes, because slots do not come back. Comments change. Internal
functions lose their comments in the database: the files of sql/ have them.
"""

from alembic import context, op

revision = "0002"
down_revision = "0001"

# For the tables, columns and sequences whose comment in version 0001 is wrong or incomplete.
COMMENTS = {
    "table budget_step": (
        "Counters for a measured budget. A row is written every five minutes in which crawlers asked for pages without "
        "naming a host, and after twelve hours in which none did. Rows are kept for a day, and at least the newest 13."
    ),
    "column host.ready_at": (
        "The place of the host in the queue of revisits: the time when next_pages should look at the host for a due "
        "page. It is the latest of five times: next slot, first due page, end of the block, busy_until, time of "
        "writing. If ready_at has already passed and a new page gets the slot, ready_at stays as it is, unless the "
        "next slot is far away or the host waits for a leased page."
    ),
    "column pulling_in.passed_over": (
        "Leases, hosts and pages that the repair skipped because they were locked. If there are any, it looks at all "
        "of them once more."
    ),
    "column host.pages": (
        "Pages of the host that entered the queue and have not left it. Pages that are gone, moved, excluded or "
        "kept_out do not count."
    ),
    "column job.ok": "True if the run succeeded.",
    "column host.head_new_rank": (
        "No new page of the host has a lower rank. Index scans start at head_new_rank and head_new_id. null = there "
        "is no new page."
    ),
    "column host.head_new_id": (
        "No new page of the host whose rank is head_new_rank has a lower id. null = there is no new page."
    ),
    "column host.failures_since": "The value of handed_out from which failures are counted.",
    "column host.crawl_delay": (
        "The delay that the robots.txt of the host asks for, at most 60 seconds: the longest of its sites, or a "
        "longer one that a report gave."
    ),
    "table inbox": (
        "Pages that wait for a new place in queue or new_page. Their rows in page say which place that is. An entry is "
        "written without a lock on the host. Upkeep applies the entries in order, while it holds the locks of the "
        "hosts."
    ),
    "column inbox.old_due": "The place of the page in queue before the change; null = it was not in queue.",
    "column inbox.old_rank": "The place of the page in new_page before the change; null = it was not in new_page.",
    "column budget_step.calls": "The value of ask_count minus the value of host_ask_count.",
    "column lease.round": (
        "A number that grows within the call of next_pages. Numbers may be missing. Most calls have one round."
    ),
    "column lease.new_pages": "The number of its pages that were new, when they were handed out.",
    "column lease.busy_hosts": "The hosts of its pages that were one_at_a_time when the pages were handed out.",
    "column page.due_at": (
        "The time when the page is due. The table queue gets this time when upkeep applies the inbox. null = the page"
        " waits among the new pages, or is leased for the first time."
    ),
    "column page.due_is": (
        "The reason for due_at. set: a report gave the time, or add_pages for a page that was done or declined. done,"
        " declined: the page is never due. null: any other due time."
    ),
    "column page.planned_due": (
        "The due time before a hint or fetch_now changed it; null = neither has changed it since the last fetch, or "
        "the page was moved again since then: by an allocation, set_interval, set_rate, the setting frequency, or "
        "because its lease ended or a crawler released it."
    ),
    "sequence short_ask_count": (
        "count: calls of next_pages that named no host and got fewer pages than they asked for, while the budget is "
        "measured. next_pages counts it. If the value jumps, a measured budget is too high or too low for a quarter of "
        "an hour."
    ),
    "table link_later": (
        "New URLs from reports that linked to a URL which another open transaction was adding. Upkeep adds their pages "
        "later. The next reports of the linking pages store the links."
    ),
    "column link_later.page_id": "Not used since version 0002.",
    "column link_later.key": "The key of the URL.",
    "column link_later.url": "The URL, as reported.",
    "table graph_state": (
        "Results of the last run of the job opic that the values of pages, and new pages, depend on. The table has one "
        "row."
    ),
    "table page_score": (
        "Scores of pages from the graph of links. Only the job opic writes them, if in_links changed, or if a score or "
        "the value of the page changed by more than 1 %."
    ),
    "column opic.moved": (
        "The number of pages that were written: new pages, pages whose number of incoming links changed, and pages "
        "whose scores or values changed by more than 1 %."
    ),
    "column graph_state.token": "Not used since version 0002.",
    "column graph_state.terms": "Not used since version 0002.",
    "column pulse.letters": (
        "One letter for each result, except for declined pages: c = changed, u = unchanged, n = nothing showed "
        "whether it changed, f = first fetch, m = missing, e = error, t = throttled, d = denied, s = stale, r = "
        "repeated, x = refused. A capital letter means that the last attempt of the page had failed."
    ),
    "table vital_hour": (
        "One row per hour, computed from the rows of vital: sums of counts, means of states, and the longest "
        "ready_wait and inbox_wait."
    ),
    "column setting.rates_every": (
        "interval: the time between two runs of the job rates, which learns how often the pages of each host change. "
        "Young crawls run it more often. none = never."
    ),
    "column setting.opic_every": (
        "interval: the time between two runs of the job opic, which scores pages by their links. Young crawls run it "
        "more often. none = never."
    ),
    "column setting.allocate_every": (
        "interval: the time between two runs of the job allocate, which divides the budget. It also runs soon after a "
        "setting or a host was changed, and when a measured budget moved by 5 %. Young crawls run it more often. none "
        "= never."
    ),
}
for table in ("vital", "vital_hour"):
    COMMENTS |= {
        f"column {table}.missing": (
            "Fetches of pages that do not exist: 404, 410 and other 4xx except 408, 425 and 429, or moved permanently."
        ),
        f"column {table}.failed": "Failed fetches: no answer, 408, 425, or 5xx except 503.",
        f"column {table}.empty_calls": "Calls of next_pages that found no host.",
        f"column {table}.pages": (
            "Pages that were added and are not gone, moved, excluded or kept_out, at the last count."
        ),
    }


def upgrade() -> None:
    # The replay of sql/ makes on_their_way again. A call reads setting first and may then write inbox,
    # fetch_log and graph_news. With locks in this order, a call that has begun can end, and a later one waits for
    # setting. judge() reads default_gap_since, and judged_results() calls it.
    op.execute("""
        alter table recrawl_internal.setting drop column memory;
        drop function if exists recrawl_internal.on_their_way(), recrawl_internal.is_news_full();
        alter table recrawl_internal.inbox drop column new_due, drop column new_rank;
        drop view if exists recrawl_internal.news_in_graph;
        drop table recrawl_internal.graph_news;
        drop view if exists recrawl_internal.visit_to_audit;
        drop table recrawl_internal.fetch_log;
        drop function if exists recrawl_internal.judged_results, recrawl_internal.judge;
        alter table recrawl_internal.setting drop column keep_log, drop column default_gap_since;
        -- opic_run stays until the replay makes it anew, so that rights on it are kept. Until then its column is_full
        -- is true in each row, also for old runs that read only the changes.
        do $$ begin
            if exists (select from pg_catalog.pg_attribute
                       where attrelid = to_regclass('recrawl.opic_run') and attname = 'is_full') then
                create or replace view recrawl.opic_run as
                select started_at, pages, links, sweeps, residual, error, converged, cash, moved, true as is_full,
                       seconds
                from recrawl_internal.opic order by started_at;
            end if;
        end $$;
        alter table recrawl_internal.opic drop column is_full;
        alter table recrawl_internal.allocation drop column worth;
        create table recrawl_internal.moved_back (
            page_id bigint not null
        ) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
        create index moved_back_page on recrawl_internal.moved_back (page_id);
        alter table recrawl_internal.moved_back replica identity full;
        comment on table recrawl_internal.moved_back is
            'Pages that moved permanently, and that another page redirects to now. Upkeep brings them back.';
        comment on column recrawl_internal.moved_back.page_id is 'The page that moved, and comes back.';
        create index host_blocked on recrawl_internal.host (host_id) where strikes > 0 or blocked_until is not null;
        create sequence recrawl_internal.host_ask_count minvalue 0 start 0;
        comment on sequence recrawl_internal.host_ask_count is
            'count: calls of next_pages that named a host, while the budget is measured. next_pages counts it. If the '
            'value jumps, a measured budget is too high or too low for a quarter of an hour.';
    """)
    for named, text in COMMENTS.items():
        kind, name = named.split()
        op.execute(f"comment on {kind} recrawl_internal.{name} is $${text}$$")
    op.execute("""
        do $$ declare function regprocedure; begin
            for function in select oid from pg_proc where pronamespace = 'recrawl_internal'::regnamespace loop
                execute format('comment on function %s is null', function);
            end loop;
        end $$
    """)


def downgrade() -> None:
    # The only way down is to base: version 0001 drops everything.
    if context.get_revision_argument() is not None:
        raise SystemExit("there is no way back to version 0001: restore a backup from before the upgrade")
