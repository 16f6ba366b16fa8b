-- The common part of report and report_pages:
--
--   1. Find or make the pages that the results link and redirect to.
--   2. Lock the leases. The transaction that has locked the row of a lease decides whether the lease has ended.
--   3. Lock the pages, also those that results redirect to, in order of their ids.
--   4. Judge the results and write the pages. New due times reach the queue through the inbox.
--   5. Take the pages off their leases.
--   6. Store the links. Note pages that moved, and that their site moved back (moved_back.sql).
--   7. Update the hosts that must change immediately: after 429 or 503, a request outside of its slot, or a new crawl
--      delay; or if the leased page that a host waited for is back; or if a host with strikes answered with a page
--      after its block. Other hosts are not locked.
--
-- The locks of 2 and 3 are statements of their own: the next statement has a new snapshot, so it sees what the last
-- transactions with these locks did. Lock order: keys of unknown links, lease, page by id, link by page id, host by id.

-- Judges and records checked results, for report and report_pages.
create or replace function record_results(t timestamptz, results result[]) returns setof recrawl.report_result
language plpgsql volatile as $$
-- plans: hashes; locks exclusion (shared), new keys, lease, page by id, link by id, host by id
declare
    led_to    found_links[];
    leases    locked_lease[];
    locked    locked_pages;
    redirects bigint[];                -- by ord: the page that a permanent redirect leads to
    done      recorded;
begin
    -- 1.
    if exists (select from unnest(results) r
               where (r.extras).links is not null or (r.extras).redirect_to is not null) then
        led_to := intern_links(t, results);
    end if;
    -- 2. `|| '{}'` unpacks an array. Large arrays are stored compressed, and would be unpacked again for each page that
    -- is looked up in them.
    leases := array(
        select (l.lease_id, l.round, l.handed_out_at, l.lease_until, l.busy_hosts, l.page_ids || '{}', l.slots || '{}',
                l.start_bys || '{}', l.dues || '{}', l.held_dues || '{}')::locked_lease
        from (select distinct r.lease_id from unnest(results) r order by 1) r
        cross join lateral (select * from lease l where l.lease_id = r.lease_id order by l.round for update) l);
    -- 3.
    select array_agg(p.page_id), array_agg(p.ctid) into locked
    from (select p.page_id, p.ctid
          from page p
          where p.page_id = any (array(select r.page_id from unnest(results) r)
                                 || array(select f.moved_to from unnest(led_to) f))
          order by p.page_id
          for no key update) p;
    if led_to is not null then
        redirects := resolved_redirects(led_to, locked.page_ids);
    end if;
    -- 4.
    done := record_pages(t, results, leases, locked, redirects);
    -- 5.
    perform take_off_leases(done.left_leases);
    -- 6.
    if led_to is not null then
        perform replace_links(led_to, done.observed) where done.observed is not null;
        perform note_moved_back(
            results, redirects, array(select a.ord from unnest(done.answers) a where a.code = 'ok'))
        where exists (select from unnest(results) r
                      where (r.extras).redirect_to is not null and redirects[r.ord] is null);
    end if;
    -- 7.
    return query
    select a.* from unnest(follow_up_on_hosts(t, done)) a order by a.ord;
end $$;

-- Judges results and writes their pages. Returns what is left to do.
create or replace function record_pages(
    t timestamptz, results result[], leases locked_lease[], locked locked_pages, redirects bigint[]
) returns recorded
language plpgsql volatile as $$
-- plans: inherited; writes page, inbox, pulse; locks page by id
declare
    rules judging_rules;
    turns text[];                      -- null if each page has one result, as is usual
    done  recorded;
begin
    if (select count(r.page_id) > count(distinct r.page_id) from unnest(results) r) then
        turns := turns_of(t, results, leases);
    end if;
    rules := (select (s, h, l.last_value)::judging_rules from setting s, host_terms h, lease_id l where h.host_id = 0);
    with
    -- The results with everything that follows from them. Only a result that counts changes its page.
    judged as materialized (
        select j.tid, j.host_id, j.lease_id, j.round, (j.judgement).*
        from judged_results(t, results, turns, leases, locked, redirects, rules) j
    ),
    -- The updated pages.
    written as (
        update page p set
            (state, moved_to, due_at, due_is, reported_at, last_status, is_denied, attempts, last_lease, stale_lease,
             relevance) = row((j.page_after).*),
            (fetched_at, successes, changes, seen_changes, seen_days, frequency, base_at, planned_due, etag,
             last_modified, content_hash, sketch) = row((j.fetches_after).*),
            meta = coalesce(j.meta, p.meta)
        from judged j
        where p.ctid = j.tid and (j.page_after).state is not null
    ),
    -- Pages that move in the queue. A page whose new due time is its held_due is there already, so it has no move.
    moved as (
        insert into inbox (host_id, page_id, old_due, old_rank, failed)
        select (move).* from judged where (move).page_id is not null
    ),
    -- The part of this report in the figures of its minute. Only if a worker ran in the last day: nothing else sums up
    -- the rows of pulse.
    counted as (
        insert into pulse (part, at, letters, late, skipped)
        select log_part(t), t, j.letters, j.late, j.skipped
        from (select string_agg((pulse).letters, '') as letters,
                     array_agg((pulse).late) filter (where (pulse).late is not null) as late,
                     sum((pulse).skipped) as skipped
              from judged) j, worker_ticked w
        where j.letters is not null and from_micros(w.last_value) > clock_timestamp() - interval '1 day'
    )
    select array_agg(answer),
           array_agg((answer).ord) filter (where is_observed and (page_after).state <> 'kept_out'),
           array_agg(host_id) filter (where (page_after).state is not null),
           array_agg(host_id) filter (where is_observed),
           array_agg(host_update) filter (where (host_update).host_id is not null),
           (select array_agg((lease_id, round, pages)::lease_count)
            from (select lease_id, round, count(*)::int as pages from judged
                  where is_on_lease group by lease_id, round) l)
    into done
    from judged;
    return done;
end $$;

-- Takes reported pages off their leases. A lease without unreported pages is deleted.
create or replace function take_off_leases(taken lease_count[]) returns void
language plpgsql volatile as $$
-- plans: inherited; writes lease; locks lease
declare
    one lease_count;
begin
    -- One by one. With a join, PostgreSQL would scan all of lease, with its dead rows, because it takes the table to be
    -- small.
    foreach one in array coalesce(taken, '{}') loop
        delete from lease l where l.lease_id = one.lease_id and l.round = one.round and l.unreported <= one.pages;
        if not found then
            update lease l set unreported = l.unreported - one.pages
            where l.lease_id = one.lease_id and l.round = one.round;
        end if;
    end loop;
end $$;

-- Updates the hosts of reported pages, and returns the answers with the times until which hosts are blocked.
create or replace function follow_up_on_hosts(t timestamptz, done recorded) returns recrawl.report_result[]
language plpgsql volatile as $$
-- plans: inherited
declare
    any_host record;                   -- is_blocked, is_struck: whether any of the hosts is blocked, or has strikes
begin
    if done.host_updates is not null then
        perform update_hosts(t, done.host_updates);
    end if;
    select bool_or(h.blocked_until > t) as is_blocked, bool_or(h.strikes > 0) as is_struck into any_host
    from (select distinct unnest(done.hosts) as id) d
    cross join lateral (       -- in the index host_blocked, which has few hosts. Newest version first: see plans.sql
        select blocked_until, strikes from host
        where host_id between d.id and d.id and (strikes > 0 or blocked_until is not null)
        order by host_id desc
        limit 1
    ) h;
    if any_host.is_struck then
        perform forgive_strike(t, done.responding_hosts);
    end if;
    return case when any_host.is_blocked then answers_with_blocks(t, done.answers) else done.answers end;
end $$;

-- Adds to the answers until when the hosts of their pages are blocked. No page of a blocked host is fetched before the
-- block ends, so next_fetch_at is not earlier than that.
create or replace function answers_with_blocks(t timestamptz, answers recrawl.report_result[])
returns recrawl.report_result[]
language sql stable as $$
-- plans: lookups
    select array_agg((
        a.ord, a.page_id, a.code, a.detail,
        case when a.next_fetch_at is not null then greatest(a.next_fetch_at, h.until) end, h.until
    )::recrawl.report_result)
    from unnest(answers) a
    left join lateral (
        select readable(h.blocked_until) as until from page p join host h on h.host_id = p.host_id
        where p.page_id = a.page_id and h.blocked_until > t
        offset 0
    ) h on true
$$;

-- Updates hosts by what results say about them. Hosts are locked one after the other, in order of id.
create or replace function update_hosts(t timestamptz, updates host_update[]) returns void
language plpgsql volatile as $$
declare
    host record;
begin
    for host in
        select host_id, bool_or(throttled) as throttled, max(retry_after) as retry_after,
               max(status) filter (where throttled) as status,
               max(late_start) as late_start, max(freed_by) as freed_by, max(crawl_delay) as crawl_delay
        from unnest(updates)
        group by host_id
        order by host_id
    loop
        if host.throttled then
            perform strike_host(host.host_id, host.retry_after, format('it answered %s', host.status), t);
        end if;
        if host.late_start is not null then
            perform push_slot(host.host_id, host.late_start, t);
        end if;
        if host.freed_by is not null then
            perform end_wait(host.host_id, host.freed_by, t);
        end if;
        if host.crawl_delay is not null then
            perform set_crawl_delay(host.host_id, host.crawl_delay, t);
        end if;
    end loop;
end $$;
