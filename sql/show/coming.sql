-- coming: a preview of next_pages that leases and locks nothing. It shows the first revisit and the first new page of
-- each host, if they may be fetched within the setting max_ahead. It ignores the inbox, the shares of the two queues
-- of hosts, and the budget.

-- The pages that next_pages would hand out at a time and within max_ahead after it, approximately.
create or replace function coming(t timestamptz, n int)
returns table (
    page_id bigint, url text, host text, is_new boolean, fetch_at timestamptz, due_at timestamptz, value real
)
language plpgsql volatile security definer as $$
-- plans: lookups
#variable_conflict use_column
declare
    s     setting;
    -- The end of the preview. The due time of a leased page is always later, so leased pages are not shown.
    until timestamptz;
begin
    select * into s from setting;
    until := t + s.max_ahead;
    if s.paused then
        return;
    end if;
    return query
    select c.page_id, p.url, c.name, c.is_new, greatest(t, c.ready_at, c.slot), c.due_at, p.value
    from (
        (select q.page_id, h.name, false as is_new, h.ready_at, next_slot(h, s) as slot, q.due_at
         from host h
         cross join lateral (
             select q.page_id, q.due_at from queue q where q.host_id = h.host_id order by q.due_at limit 1
         ) q
         where h.ready_at between from_micros((select last_value from host_horizon)) and until and q.due_at <= until
         order by h.ready_at
         limit n)
        union all
        (select l.page_id, l.name, true, l.ready_at, l.slot, null
         from occupied_classes(0) as o
         cross join lateral (
             select w.page_id, h.name, h.new_ready_at as ready_at, next_slot(h, s) as slot
             from host h
             cross join lateral (
                 select w.page_id from new_page w where w.host_id = h.host_id order by w.rank, w.page_id limit 1
             ) w
             where h.new_class = o.class and h.new_ready_at between o.since and until
             order by h.new_ready_at
             limit n
         ) l
         limit n)
    ) c
    join page p on p.page_id = c.page_id
    order by greatest(t, c.ready_at, c.slot), c.due_at, p.value desc
    limit n;
end $$;
grant execute on function coming to recrawl_reader;
