-- The fetch log: every observation that taught something about a page's rate, where the setting keep_log asks for it.
-- Append-only, in four parts that take turns, each for half of the time that is kept; the one whose turn is next is
-- emptied before.

create or replace function recrawl_internal.log_part(t timestamptz, keep_log interval) returns int
language sql immutable parallel safe
as $$
    select mod(floor(2 * extract(epoch from t) / extract(epoch from keep_log))::bigint, 4)::int
$$;
comment on function recrawl_internal.log_part(timestamptz, interval) is
    'Which part of the fetch log a time belongs to.';

-- A part that somebody reads (pg_dump, say) is emptied at another time.
create or replace function recrawl_internal.rotate_log_at(t timestamptz) returns void
language plpgsql volatile
set search_path = recrawl_internal, pg_temp
set lock_timeout = '10ms'
as $$
declare
    keep   constant interval := (select keep_log from setting);
    filled boolean;
begin
    for part in 0 .. 3 loop
        continue when keep is not null and part <> mod(log_part(t, keep) + 1, 4);
        execute format('select exists (select from fetch_log_%s)', part) into filled;
        if filled then
            begin
                execute format('truncate fetch_log_%s', part);
            exception when lock_not_available then
                null;
            end;
        end if;
    end loop;
end $$;
comment on function recrawl_internal.rotate_log_at(timestamptz) is
    'Empties the part of the fetch log whose turn is next; all of them where no log is wanted.';

-- The filter's belief is about all of a page's visits, so only pages are looked at whose visits are all in the log.
create or replace view recrawl_internal.visit_to_audit as
select l.page_id,
       l.days,
       l.changed::int as changed,
       b.changes as belief_changes,
       b.days as belief_days
from (select *, count(*) over (partition by page_id) as visits from recrawl_internal.fetch_log) l
join recrawl_internal.page p on p.page_id = l.page_id and p.fetches = l.visits + 1
join recrawl_internal.host_terms common on common.host_id = 0
left join recrawl_internal.host_terms own on own.host_id = p.host_id
cross join lateral recrawl_internal.belief(null, p.seen_changes, p.seen_days, own, common) b
order by l.page_id, l.at;
comment on view recrawl_internal.visit_to_audit is
    'Logged visits of pages of which all visits are logged, page by page, and what the filter believes of the page.';
grant select on recrawl_internal.visit_to_audit to recrawl_worker;
