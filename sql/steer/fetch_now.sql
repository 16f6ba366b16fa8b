-- Due at once, politely: the pages go to the head of their hosts' queues. A microsecond apart: the queue finds a page
-- by its due time, and would have to look through all that share one.

create or replace function recrawl_internal.fetch_now_at(t timestamptz, page_ids bigint[]) returns int
language sql volatile
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes page, inbox; locks page by id
    with
    wanted as (
        select p.page_id, p.host_id, p.due_at, p.value, t - w.nth * interval '1 microsecond' as new_due
        from (select id, row_number() over (order by id desc) - 1 as nth
              from (select distinct unnest(page_ids) as id) d) w
        join page p on p.page_id = w.id and p.state = 'live'
        order by p.page_id
        for update of p
    ),
    due as (
        update page p set due_at = w.new_due, planned_due = coalesce(p.planned_due, w.due_at)
        from wanted w
        where p.page_id = w.page_id
    ),
    told as (
        insert into inbox (host_id, page_id, old_due, old_rank, new_due)
        select host_id, page_id, due_at, case when due_at is null then -value end, new_due from wanted
        returning 1
    )
    select count(*)::int from told
$$;
comment on function recrawl_internal.fetch_now_at(timestamptz, bigint[]) is 'fetch_now at a given time.';

create or replace function recrawl.fetch_now(page_ids bigint[]) returns int
language sql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
    select check_isolation('fetch_now');
    select fetch_now_at(clock_timestamp(), page_ids)
$$;
comment on function recrawl.fetch_now(bigint[]) is
    'Makes pages due at once, within their hosts'' gaps; returns how many. Pages that are being fetched already, or '
    'are no longer live, stay as they are.';
grant execute on function recrawl.fetch_now to recrawl_operator;
