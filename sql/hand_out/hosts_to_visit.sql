-- The hosts that a round of next_pages visits, and the number of pages that each queue of hosts should give. Each queue
-- (revisits, new pages) gives the first hosts whose next slot lies within the look-ahead. A revisit must be due now: a
-- slot in the future, for a page that is not due yet, would keep the host from giving new pages until then.
--
-- The hosts are locked. A host that another transaction has locked is skipped. A lock of this transaction does not make
-- it skip a host, so `picked` names the hosts that this round has already.
--
-- Cost: an index scan over the queue from its horizon to the end of the look-ahead. The scan skips hosts whose next
-- slot is later: the other queue took a page of them after they had come to the front.

create or replace function recrawl_internal.hosts_to_visit(
    t timestamptz, wanted int, wanted_new int, most_new int, new_first boolean, first_class int, per_visit numeric,
    slots_until timestamptz, per_host int, host_from timestamptz, stuck bigint[], alone bigint,
    s recrawl_internal.setting
) returns recrawl_internal.visits
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited; locks host (passing over locked ones)
declare
    v        visits := ('{}', '{}', 0, 0, false, false, null);
    asked    int;                      -- pages that one queue is asked for
    asks_new boolean;
    hosts    int;
    picked   tid[];
    more     tid[];
begin
    if (select last_value from new_classes) = 0 then
        most_new := 0;
    end if;
    wanted_new := least(wanted_new, most_new);
    -- Three asks: one queue for its share, the other queue for all the rest, the first queue for what is still missing.
    for ask in 1 .. 3 loop
        asked := case when ask > 1 then wanted - v.due_pages - v.new_pages
                      when new_first then wanted_new
                      else wanted - wanted_new end;
        asks_new := (ask = 2) <> new_first;
        if asks_new then
            asked := least(asked, most_new - v.new_pages);
        end if;
        continue when asked = 0 or case when asks_new then v.new_short else v.due_short end;
        hosts := ceil(asked / per_visit);
        picked := v.due_hosts || v.new_hosts;
        if alone is not null then
            more := array(
                select h.ctid from host h
                where h.host_id = alone and h.host_id <> all (stuck) and picked = '{}'
                  and case when asks_new then h.new_class is not null and h.new_ready_at <= slots_until
                       else h.ready_at <= slots_until and h.head_due <= t end
                  and has_slot(h, s, t, slots_until, per_host)
                for update skip locked);
        elsif asks_new then
            more := array(
                select l.tid
                from occupied_classes(first_class) as c
                cross join lateral (
                    select h.ctid as tid from host h
                    where h.new_class = c.class and h.new_ready_at between c.since and slots_until
                      and h.host_id <> all (stuck)
                      and (cardinality(picked) = 0 or (h.ctid in (select unnest(picked))) is not true)
                      and has_slot(h, s, t, slots_until, per_host)
                    order by h.new_ready_at
                    limit hosts
                    for update skip locked
                ) l
                limit hosts);
        else
            more := array(
                select h.ctid from host h
                where h.ready_at between host_from and slots_until and h.head_due <= t
                  and h.host_id <> all (stuck)
                  and (cardinality(picked) = 0 or (h.ctid in (select unnest(picked))) is not true)
                  and has_slot(h, s, t, slots_until, per_host)
                order by h.ready_at
                limit hosts
                for update skip locked);
        end if;
        if asks_new then
            v.new_hosts := v.new_hosts || more;
            v.new_pages := v.new_pages + least(asked, ceil(cardinality(more) * per_visit));
            v.new_short := cardinality(more) < hosts;
        else
            v.due_hosts := v.due_hosts || more;
            v.due_pages := v.due_pages + least(asked, ceil(cardinality(more) * per_visit));
            v.due_short := cardinality(more) < hosts;
        end if;
    end loop;
    -- If both queues have too few hosts, the chosen hosts may give more pages than expected.
    asked := wanted - v.due_pages - v.new_pages;
    if asked > 0 then
        v.new_pages := least(most_new, v.new_pages + case when v.due_hosts = '{}' then asked
                                                          when v.new_hosts = '{}' then 0
                                                          else floor(asked * s.discovery) end);
        v.due_pages := case when v.due_hosts = '{}' then 0 else wanted - v.new_pages end;
    end if;
    -- A host keeps new pages that are more than four times less valuable than the pages that hosts were chosen for, as
    -- long as other hosts have better ones.
    if v.new_hosts <> '{}' and not v.new_short then
        v.worst_rank := (select worst_rank_of(max(h.new_class) + 2) from host h where h.ctid = any (v.new_hosts));
    end if;
    return v;
end $$;
comment on function recrawl_internal.hosts_to_visit(
    timestamptz, int, int, int, boolean, int, numeric, timestamptz, int, timestamptz, bigint[], bigint,
    recrawl_internal.setting
) is
    'Locks the hosts of both queues, or the one host that is named, that are expected to give the wanted pages.';
