-- Due times that people give: fetch_now makes pages due immediately, within the gaps of their hosts.

-- Late pages of the same host stay before these pages. The new due times are a microsecond apart, because a row of the
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
