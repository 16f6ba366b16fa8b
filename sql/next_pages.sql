-- The queue's one pop. Hosts that are ready are locked first, skipping those that others hold; then each host gives its next
-- pages a slot, new pages and revisits taking turns; what is handed out moves to a due time that its lease cannot reach.
--
-- Lock order: host (never waits), queue. Pages are only read.
-- Cost: an index scan over the ready hosts from the horizon up, one over each host's queue from its head up, one page look-up
-- each. Neither the size of the tables nor what is not due yet matters.

create or replace function recrawl_internal.next_pages_at(t timestamptz, n int, ahead interval, lease interval, per_host int)
returns setof recrawl.page_to_fetch
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    s           setting;
    host_from   timestamptz;           -- horizons
    lease_from  timestamptz;
    inbox_from  timestamptz;
    tick_due    boolean;
    hosts       tid[];
    per_visit   numeric;               -- pages that a host is expected to give
    most        int;                   -- pages that a host may give in this round
    wanted      int := n;
    got         int;
    idle        boolean := false;      -- the last round found nothing, and there was nothing to drain
    -- Upkeep updates pages. Whoever does that must hold no host: a report may hold the pages and wait for the host.
    holds_none  constant boolean := pg_current_xact_id_if_assigned() is null;
    slots_until constant timestamptz := t + ahead;
    lease_ends  constant timestamptz := t + ahead + lease;
    -- A lease must keep its pages from every other caller, however far ahead that one looks: this is the most that the setting
    -- max_ahead can be.
    hold        constant interval := '10 minutes';
    held_until  constant timestamptz := lease_ends + hold;
    this_lease  bigint;
    stuck       bigint[] := '{}';      -- hosts of pages whose expired lease cannot be taken back now
begin
    perform check_isolation('next_pages');
    select * into s from setting;
    if n is null or n <= 0 then
        perform refuse(format('next_pages: n must be positive, got %s', coalesce(n::text, 'null')));
    elsif ahead is null or ahead not between interval '0' and s.max_ahead then
        perform refuse(format('next_pages: ahead must lie between 0 and the setting max_ahead (%s), got %s', s.max_ahead, coalesce(ahead::text, 'null')));
    elsif lease is null or lease not between interval '1 second' and interval '7 days' then
        perform refuse(format('next_pages: lease must lie between 1 second and 7 days, got %s', coalesce(lease::text, 'null')));
    elsif per_host <= 0 then
        perform refuse(format('next_pages: per_host must be positive, got %s', per_host));
    end if;
    if s.paused then
        return;
    end if;
    select from_micros(h.last_value), from_micros(l.last_value), from_micros(i.last_value), tick_is_due(n.last_value, t)
    into host_from, lease_from, inbox_from, tick_due
    from host_horizon h, lease_horizon l, inbox_horizon i, next_tick n;
    if holds_none and tick_due then
        perform tick_at(t, 10, 200);
    end if;

    -- After an outage, the due times that hold the pages of expired leases may have come. They go back before anything is handed
    -- out: a few at a time, while callers get nothing. Where somebody's open transaction locks a lease, the hosts of its pages wait.
    if exists (select from lease where lease_until between lease_from and slots_until - hold) then
        perform reap_at(t, 100) where holds_none;
        perform from lease where lease_until between lease_from and slots_until - hold limit 1 for update skip locked;
        if found then
            return;
        end if;
        stuck := waiting_hosts(slots_until - hold);
    end if;

    per_visit := case when ahead = interval '0' then 1
                      else least(coalesce(per_host, wanted), 1 + floor(date_part('epoch', ahead) / date_part('epoch', s.default_gap)), wanted) end;
    for round in 1 .. 30 loop
        hosts := array(
            select h.ctid from host h
            where h.ready_at between host_from and t and h.host_id <> all (stuck)
            order by h.ready_at
            limit ceil(wanted / per_visit)
            for update skip locked);
        if cardinality(hosts) = 0 then
            exit when idle
                   or not exists (select from lease where lease_until between lease_from and t
                                  union all
                                  select from inbox where at >= inbox_from);
            perform reap_at(t, 100) where holds_none and this_lease is null;
            idle := drain_at(t, 10 * least(n, 1000) + 200) = 0;
            continue;
        end if;
        most := case when ahead = interval '0' then 1
                     else least(coalesce(per_host, wanted), ceil(wanted::numeric / cardinality(hosts))) end;
        this_lease := coalesce(this_lease, nextval('lease_id'));

        return query
        with ready as materialized (
            select h.ctid as host_tid, h.host_id, h.name, h.head_due, h.head_new_rank, h.head_new_id, h.balance, h.one_at_a_time,
                   host_gap(h.gap, h.crawl_delay, s.default_gap) as gap,
                   greatest(h.last_slot_at + host_gap(h.gap, h.crawl_delay, s.default_gap), t) as free_at,
                   -- The shares of the hosts add up to what is wanted.
                   case when h.one_at_a_time then 1
                        else least(most, wanted / cardinality(hosts) + (place <= wanted % cardinality(hosts))::int) end as share
            from unnest(hosts) with ordinality as locked (tid, place)
            join host h on h.ctid = locked.tid
        ),
        -- One more than can be taken: the first that stays is the new head.
        waiting as (
            select r.host_tid, r.host_id, r.name, r.gap, r.free_at, r.share, r.one_at_a_time, w.tid, w.page_id, w.due_at, w.rank,
                   row_number() over (partition by r.host_id order by coalesce(w.due_at > t, false), w.turn, w.due_at, w.rank, w.page_id) as place
            from ready r
            left join lateral (
                (select q.*, null::real as rank, row_number() over (order by q.due_at) / nullif(1 - s.discovery, 0) as turn
                 from (select ctid as tid, page_id, due_at
                       from queue
                       where host_id = r.host_id and due_at >= r.head_due
                       order by due_at
                       limit most + 1) q)
                union all
                (select f.tid, f.page_id, null, f.rank,
                        r.balance + row_number() over (order by f.rank, f.page_id) / nullif(s.discovery, 0)
                 from (select ctid as tid, page_id, rank
                       from new_page
                       where host_id = r.host_id and (rank, page_id) >= (r.head_new_rank, r.head_new_id)
                       order by rank, page_id
                       limit most + 1) f)
            ) w on true
        ),
        -- A slot is the later of the page's due time and a gap after the slot before: over all places at once,
        -- slot(k) = k gaps + the greatest, over places j up to k, of (what j waits for − j gaps).
        slotted as (
            select host_tid, host_id, name, gap, share, one_at_a_time, tid, page_id, due_at, rank, place,
                   (place - 1) * gap
                       + max(greatest(free_at, due_at - (place - 1) * gap)) over (partition by host_id order by place) as slot
            from waiting
        ),
        taken as (
            select host_tid, host_id, gap, one_at_a_time, slot, tid, page_id,
                   tid is not null and place <= share and slot <= slots_until as taken, due_at, rank, name
            from slotted
        ),
        -- Rows of pages that are no longer live are taken too, but only to be dropped. A page that a later call had meanwhile (this
        -- one drew its lease id in an earlier round) stays where it is: the lease ids of a page ascend.
        picked as materialized (
            select host_tid, host_id, gap, one_at_a_time, slot, tid, page_id, coalesce(p.is_live and p.is_next, false) as given, taken and not coalesce(p.is_live, false) as dropped,
                   due_at, rank, greatest(next_due(coalesce(due_at, slot), slot, p.frequency), held_until) as held_due,
                   name, p.url, p.attempts, p.value, p.etag, p.last_modified, p.content_hash, p.meta
            from taken k
            left join lateral (
                select p.url, p.attempts, p.value, p.etag, p.last_modified, p.content_hash, p.meta, p.state = 'live' as is_live, coalesce(p.last_lease, 0) < this_lease as is_next,
                       page_frequency(p.frequency, p.rate, s.frequency) as frequency
                from page p
                where k.taken and p.page_id = k.page_id
                offset 0
            ) p on true
        ),
        revisit_moved as (
            update queue q set due_at = p.held_due from picked p where q.ctid = p.tid and p.given and p.rank is null
        ),
        revisit_dropped as (
            delete from queue q using picked p where q.ctid = p.tid and p.dropped and p.rank is null
        ),
        new_left as (
            delete from new_page f using picked p where f.ctid = p.tid and (p.given or p.dropped) and p.rank is not null
        ),
        new_entered as (
            insert into queue (host_id, page_id, due_at) select host_id, page_id, held_due from picked where given and rank is not null
        ),
        told as (
            select host_tid, min(gap) as gap, bool_or(one_at_a_time) as one_at_a_time,
                   count(*) filter (where given) as given,
                   count(*) filter (where dropped) as dropped,
                   max(slot) filter (where given) as last_slot,
                   -- Whatever stays or was moved; null when the queue was seen to its end.
                   min(case when given then held_due when not dropped then due_at end) as head_due,
                   min(rank) filter (where not given and not dropped) as head_new_rank,
                   min(page_id) filter (where not given and not dropped and rank is not null) as head_new_id,
                   case when bool_or(rank is not null) and bool_or(due_at <= t) then
                       count(*) filter (where given and rank is not null) / nullif(s.discovery, 0)
                       - count(*) filter (where given and due_at <= t) / nullif(1 - s.discovery, 0)
                   end as turns
            from picked
            group by host_tid
        ),
        host_moved as (
            update host h set
                last_slot_at = coalesce(o.last_slot, h.last_slot_at),
                head_due = coalesce(o.head_due, 'infinity'),
                head_new_rank = o.head_new_rank,
                head_new_id = o.head_new_id,
                balance = greatest(-o.longest, least(o.longest, h.balance + coalesce(o.turns, 0))),
                fetches = h.fetches + o.given,
                pages = h.pages - o.dropped,
                busy_until = case when o.one_at_a_time and o.given > 0 then lease_ends end,
                busy_lease = case when o.one_at_a_time and o.given > 0 then this_lease end,
                ready_at = when_ready(coalesce(o.head_due, 'infinity'), o.head_new_id, coalesce(o.last_slot, h.last_slot_at) + o.gap,
                                         null, case when o.one_at_a_time and o.given > 0 then lease_ends end, t)
            from (select *, greatest(1 / nullif(s.discovery, 0), 1 / nullif(1 - s.discovery, 0)) as longest from told) o
            where h.ctid = o.host_tid
        ),
        leased as (
            insert into lease (lease_id, round, popped_at, lease_until, unreported, page_ids, slots, dues, held_dues, busy_hosts)
            select this_lease, round, t, lease_ends, count(*), array_agg(page_id), array_agg(slot), array_agg(coalesce(due_at, slot)),
                   array_agg(held_due), array_agg(host_id) filter (where one_at_a_time)
            from (select * from picked where given order by page_id) p   -- report finds a page by binary search
            having count(*) > 0
        )
        select page_id, url, name, slot, least(slot + s.start_within, lease_ends), greatest(slot - t, interval '0'), this_lease, lease_ends,
               attempts + 1, value, etag, last_modified, content_hash, meta
        from picked
        where given
        order by slot;
        get diagnostics got = row_count;
        wanted := wanted - got;
        exit when wanted <= 0;
        -- Hosts that gave less than expected have no more for now: visit as many more as it takes.
        per_visit := greatest(1, got::numeric / cardinality(hosts));
    end loop;
end $$;
comment on function recrawl_internal.next_pages_at(timestamptz, int, interval, interval, int) is 'next_pages at a given time.';

create or replace function recrawl.next_pages(
    n int default 100, ahead interval default '0', lease interval default '10 minutes', per_host int default null
) returns setof recrawl.page_to_fetch
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
begin
    return query select * from next_pages_at(clock_timestamp(), n, ahead, lease, per_host);
end $$;
comment on function recrawl.next_pages(int, interval, interval, int) is
    'Hands out at most n pages to fetch, leased for a time. With ahead = 0 each may be requested at once, one per host; with '
    'ahead > 0 several of a host (at most per_host), at least its gap apart, as fetch_at says. Commit before fetching. '
    'No row: nothing may be fetched now, see next_ready_at().';
