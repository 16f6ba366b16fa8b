-- Due times that people give: fetch_now makes pages due immediately, within the gaps of their hosts.

-- Gives pages new due times. page_ids must be distinct. Returns how many pages it moved. A leased page keeps its place
-- in the queue. Its row gets the new due time, until its report or the end of its lease. planned_due keeps the time
-- that a page was planned for before it was moved. A page that had no next due time has no planned time either.
create or replace function move_dues(page_ids bigint[], dues timestamptz[], new_due_is text) returns int
language sql volatile as $$
-- plans: lookups; locks page by id
    select move_pages(array(
        select move_of(p, w.new_due, new_due_is,
                       case when is_never(p.due_at) is not true then coalesce(p.planned_due, p.due_at) end, p.frequency)
        from unnest(page_ids, dues) as w (page_id, new_due)
        join page p on p.page_id = w.page_id and p.state = 'live'
        order by p.page_id
        for update of p))
$$;

-- The pages go to the heads of the queues of their hosts. Their due times are a microsecond apart, because a row of the
-- queue is found by its due time: with one time for all, each look-up would read all of these rows.
create or replace function fetch_now_at(t timestamptz, page_ids bigint[]) returns int
language sql volatile as $$
    select move_dues(array_agg(id), array_agg(t - nth * interval '1 microsecond'), null)
    from (select id, row_number() over (order by id desc) - 1 as nth
          from (select distinct unnest(page_ids) as id) d) w
$$;

create or replace function recrawl.fetch_now(page_ids bigint[]) returns int
language sql volatile security definer as $$
    select check_isolation('fetch_now');
    select fetch_now_at(clock_timestamp(), page_ids)
$$;
comment on function recrawl.fetch_now is
    'Makes pages due immediately. Returns the number of them that are in the crawl. The gaps of their hosts still '
    'apply. A crawler that has one of the pages keeps it. Pages that left the crawl stay as they are. Pages that are '
    'done or declined are fetched again.';
grant execute on function recrawl.fetch_now to recrawl_operator;
