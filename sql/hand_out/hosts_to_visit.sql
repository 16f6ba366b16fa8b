-- Which hosts a round of next_pages visits, and for how many pages. Each line gives its first that can have a slot
-- within the look-ahead, locked, passing over those that others hold: one's own locks do not hold one off, so what was
-- picked already is named.
--
-- Cost: an index scan over the line from its horizon up. Hosts that keep their place while they are in their gap are
-- passed over; the other line took a page of them since they came to the front.

-- They are locked already.
create or replace function recrawl_internal.hosts_again(
    t timestamptz, hosts bigint[], asks_new boolean, slots_until timestamptz, per_host int, most int,
    picked tid[], s recrawl_internal.setting
) returns tid[]
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited
begin
    return array(
        select h.ctid
        from (select distinct unnest(hosts) as host_id) v
        join host h on h.host_id = v.host_id
        where not h.one_at_a_time
          and case when asks_new then h.head_new_id is not null else h.head_due <= slots_until end
          and (h.ctid in (select unnest(picked))) is not true
          and has_slot(h, s, t, slots_until, per_host)
        limit most);
end $$;
comment on function recrawl_internal.hosts_again(
    timestamptz, bigint[], boolean, timestamptz, int, int, tid[], recrawl_internal.setting
) is
    'Which of the hosts that a call has visited have more, of either kind, within its look-ahead.';

create or replace function recrawl_internal.hosts_to_visit(
    t timestamptz, wanted int, wanted_new int, most_new int, new_first boolean, first_class int, per_visit numeric,
    slots_until timestamptz, per_host int, host_from timestamptz, stuck bigint[], again bigint[], alone bigint,
    s recrawl_internal.setting
) returns recrawl_internal.visits
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: inherited; locks host (passing over locked ones)
declare
    v        visits := ('{}', '{}', 0, 0, false, false, null);
    asked    int;                      -- pages that a line is asked for
    asks_new boolean;
    hosts    int;
    picked   tid[];
    more     tid[];
begin
    if (select last_value from new_classes) = 0 then
        most_new := 0;
    end if;
    wanted_new := least(wanted_new, most_new);
    -- A line is asked for its share, the other for all the rest, the first again for what that leaves.
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
        if again is not null then
            more := hosts_again(t, again, asks_new, slots_until, per_host, hosts, picked, s);
        elsif alone is not null then
            more := array(
                select h.ctid from host h
                where h.host_id = alone and h.host_id <> all (stuck) and picked = '{}'
                  and case when asks_new then h.new_class is not null and h.new_ready_at <= t else h.ready_at <= t end
                  and has_slot(h, s, t, slots_until, per_host)
                for update skip locked);
        elsif asks_new then
            more := array(
                select l.tid
                from occupied_classes(first_class) as c
                cross join lateral (
                    select h.ctid as tid from host h
                    where h.new_class = c.class and h.new_ready_at between c.since and t
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
                where h.ready_at between host_from and t
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
    -- What is left when both lines are short, their hosts may have beyond what is expected of them.
    asked := wanted - v.due_pages - v.new_pages;
    if asked > 0 then
        v.new_pages := least(most_new, v.new_pages + case when v.due_hosts = '{}' then asked
                                                          when v.new_hosts = '{}' then 0
                                                          else floor(asked * s.discovery) end);
        v.due_pages := case when v.due_hosts = '{}' then 0 else wanted - v.new_pages end;
    end if;
    -- Where others have better ones, a host keeps its pages that are more than four times worse than those that hosts
    -- were chosen for.
    if v.new_hosts <> '{}' and not v.new_short then
        v.worst_rank := (select worst_rank_of(max(h.new_class) + 2) from host h where h.ctid = any (v.new_hosts));
    end if;
    return v;
end $$;
comment on function recrawl_internal.hosts_to_visit(
    timestamptz, int, int, int, boolean, int, numeric, timestamptz, int, timestamptz, bigint[], bigint[], bigint,
    recrawl_internal.setting
) is
    'Hosts from both lines, or the only one that is asked, locked, that are expected to give so many pages in all, so '
    'many of them new.';
