-- The hosts that a round of next_pages visits, and the number of pages that each queue of hosts should give. Each queue
-- (revisits, new pages) gives its first hosts that have a slot within the look-ahead.
--
-- The hosts are locked. A host that another transaction has locked is skipped. SKIP LOCKED does not skip hosts that
-- this transaction has locked itself, so a condition excludes the hosts that this round has chosen already.
--
-- Cost: an index scan over a queue of hosts, from the host that is ready first until enough hosts are chosen, at most
-- to the end of the look-ahead. A host that has just given a page from one queue may keep its place in the other queue,
-- although it has no free slot. The scan reads such a host, and does not choose it.

-- No slot of a host is later than this: its slots are one step apart, within the look-ahead, and at most per_host.
create or replace function slots_end(a ask, step interval) returns timestamptz
language sql stable parallel safe
return least(a.slots_until, a.slots_from + a.per_host * step - interval '1 microsecond');

-- Whether a host can give a page with this due time (null: a new page) within the look-ahead. It cannot if it is
-- blocked now, or waits for a page that is leased.
create or replace function has_slot(h host, page_due timestamptz, a ask) returns boolean
language sql stable parallel safe
return greatest(next_slot(h, a.s), page_due) <= slots_end(a, slot_every(h, a.s))
   and (greatest(h.blocked_until, h.busy_until) > a.t) is not true;

-- Adds the next hosts of the queue of revisits to the visits, and locks them. It takes as many hosts as are expected to
-- give the pages.
create or replace function with_revisits(v visits, a ask, pages int, pages_per_host numeric) returns visits
language plpgsql volatile as $$
-- plans: inherited; locks host (passing over locked ones)
declare
    max_hosts constant int := ceil(pages / pages_per_host);
    picked constant tid[] := v.due_hosts || v.new_hosts;
    hosts  tid[];
begin
    if pages <= 0 or v.due_exhausted then
        return v;
    elsif a.only_host is not null then
        hosts := array(
            select h.ctid from host h
            where h.host_id = a.only_host and h.head_due <= a.head_due_until
              and picked = '{}' and has_slot(h, h.head_due, a)
            for update skip locked);
    else
        hosts := array(
            select h.ctid from host h
            where h.ready_at between a.host_from and a.slots_until and h.head_due <= a.head_due_until
              and (picked = '{}' or (h.ctid in (select unnest(picked))) is not true)
              and has_slot(h, h.head_due, a)
            order by h.ready_at
            limit max_hosts
            for update skip locked);
    end if;
    v.due_hosts := v.due_hosts || hosts;
    v.due_pages := v.due_pages + least(pages, ceil(cardinality(hosts) * pages_per_host));
    v.due_exhausted := cardinality(hosts) < max_hosts;
    return v;
end $$;

-- The same for the queue of new pages: class by class, and without a due time. The search begins at the class
-- first_class, usually the best.
create or replace function with_new_pages(v visits, a ask, pages int, pages_per_host numeric) returns visits
language plpgsql volatile as $$
-- plans: inherited; locks host (passing over locked ones)
declare
    max_hosts constant int := ceil(pages / pages_per_host);
    picked constant tid[] := v.due_hosts || v.new_hosts;
    hosts  tid[];
begin
    if pages <= 0 or v.new_exhausted then
        return v;
    elsif a.only_host is not null then
        hosts := array(
            select h.ctid from host h
            where h.host_id = a.only_host and h.new_class is not null
              and picked = '{}' and has_slot(h, null, a)
            for update skip locked);
    else
        -- The hosts come in the order of occupied_classes(): the only plan is a nested loop, and it keeps the order.
        hosts := array(
            select first.tid
            from occupied_classes(a.first_class) as c
            cross join lateral (
                select h.ctid as tid from host h
                where h.new_class = c.class and h.new_ready_at between c.since and a.slots_until
                  and (picked = '{}' or (h.ctid in (select unnest(picked))) is not true)
                  and has_slot(h, null, a)
                order by h.new_ready_at
                limit max_hosts
                for update skip locked
            ) first
            limit max_hosts);
    end if;
    v.new_hosts := v.new_hosts || hosts;
    v.new_pages := v.new_pages + least(pages, ceil(cardinality(hosts) * pages_per_host));
    v.new_exhausted := cardinality(hosts) < max_hosts;
    return v;
end $$;

-- Locks the hosts that are expected to give the wanted pages, among them the wanted new pages. most_new: the most new
-- pages. pages_per_host: the pages that a host is expected to give.
create or replace function hosts_to_visit(
    a ask, wanted int, wanted_new int, most_new int, new_first boolean, pages_per_host numeric
) returns visits
language plpgsql volatile as $$
-- plans: inherited; locks host (passing over locked ones)
declare
    v    visits := ('{}', '{}', 0, 0, false, false, null);
    rest int;
begin
    if (select last_value from new_classes) = 0 then       -- no class has a host: there are no new pages
        most_new := 0;
    end if;
    wanted_new := least(wanted_new, most_new);
    -- One queue is asked for its share, then the other queue for all the rest, then the first one again for what is
    -- still missing. So a queue with too few hosts leaves its share to the other.
    if new_first then
        v := with_new_pages(v, a, wanted_new, pages_per_host);
        v := with_revisits(v, a, wanted - v.new_pages, pages_per_host);
        v := with_new_pages(v, a, least(wanted - v.due_pages, most_new) - v.new_pages, pages_per_host);
    else
        v := with_revisits(v, a, wanted - wanted_new, pages_per_host);
        v := with_new_pages(v, a, least(wanted - v.due_pages, most_new), pages_per_host);
        v := with_revisits(v, a, wanted - v.due_pages - v.new_pages, pages_per_host);
    end if;
    -- If both queues have too few hosts, the chosen hosts are asked for more pages than expected.
    rest := wanted - v.due_pages - v.new_pages;
    if rest > 0 then
        v.new_pages := least(most_new, v.new_pages + case when v.due_hosts = '{}' then rest
                                                          when v.new_hosts = '{}' then 0
                                                          else floor(rest * (a.s).discovery) end);
        v.due_pages := case when v.due_hosts = '{}' then 0 else wanted - v.new_pages end;
    end if;
    -- While other hosts have better new pages, a host keeps its poor ones. New pages more than two classes below the
    -- class of the worst chosen host stay: they have less than a quarter of the value of that class. Measured with
    -- 40,000 new pages on 2,000 hosts, where a call takes up to ten pages of a host, and with values that are
    -- log-normal (σ = 2): the pages of a call have .75 of the value of the same number of best pages. Without this rule
    -- they have .19.
    if v.new_hosts <> '{}' and not v.new_exhausted then
        v.worst_rank := (select last_rank_of(max(h.new_class) + 2) from host h where h.ctid = any (v.new_hosts));
    end if;
    return v;
end $$;
