-- Gives pages other due times, for fetch_now, set_interval, set_rate, add_pages, hints, the job allocate and the repair
-- after clock steps. The row of the page and the queue must say the same. So the row is written together with an entry
-- of the inbox, which moves the page in the queue.
--
-- take_out() does the same for pages that leave: keep_out, exclude and delete_pages. Other functions write their own
-- entries of the inbox, because an array of moves does not fit them:
--
--   * report, release and the end of a lease: the old place of a leased page comes from the lease
--   * insert_pages() and revive(): there is no old place
--   * put_values(): the new place is a rank, and only new pages have one
--   * delete_pages, for pages on a lease: as release, but there is no new place
--   * follow_frequency(): a change of all pages at once is too large for an array

select make_type('due_move', '(
    page_id bigint, host_id bigint, old_due timestamptz, old_rank real, new_due timestamptz, due_is text,
    planned_due timestamptz, frequency real)',
    'A page that gets another due time: its old place, as in inbox, and the columns of page after the move.');

-- The move of a page from its place in the queue, or among the new pages, to a due time.
create or replace function move_of(p page, new_due timestamptz, due_is text, planned_due timestamptz, frequency real)
returns due_move
language sql immutable parallel safe
return (p.page_id, p.host_id, p.due_at, case when p.due_at is null then -p.value end, new_due, due_is, planned_due,
        frequency)::due_move;

-- Gives pages new due times. The caller has locked the pages, in order of id. Returns their number.
create or replace function move_pages(moves due_move[]) returns int
language sql volatile as $$
-- plans: lookups; writes page, inbox; locks page by id
    with
    -- The rows of the pages.
    written as (
        update page p set
            due_at = m.new_due, due_is = m.due_is, planned_due = m.planned_due, frequency = m.frequency
        from unnest(moves) m
        where p.page_id = m.page_id
    ),
    -- The queue gets the new due times through the inbox.
    moved as (
        insert into inbox (host_id, page_id, old_due, old_rank)
        select host_id, page_id, old_due, old_rank from unnest(moves)
        returning 1
    )
    select count(*)::int from moved
$$;

-- Gives pages new due times. page_ids must be distinct. Returns how many pages it moved. If a page is leased, only its
-- row in `page` gets the new due time, until its report or the end of its lease. Its place in the queue stays.
-- planned_due keeps the time that a page was planned for before it was moved. A page that had no next due time has no
-- planned time either.
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

-- Makes pages live again. The caller has locked them, in order of id. Returns their number. They are due now, a
-- microsecond apart, as in fetch_now(). But a page that was never fetched and had no due time is new again, and a page
-- that is done or declined is still not due.
create or replace function revive(t timestamptz, page_ids bigint[]) returns int
language sql volatile as $$
-- plans: inherited; writes page, inbox; locks page by id
    with
    -- The rows of the pages.
    revived as (
        update page p set
            state = 'live',
            moved_to = null,
            due_at = case when is_never(p.due_at) or coalesce(p.due_at, p.fetched_at) is null then p.due_at
                          else t - w.nth * interval '1 microsecond' end,
            due_is = case when is_never(p.due_at) then p.due_is end
        from (select id, row_number() over (order by id desc) - 1 as nth from unnest(page_ids) as id) w
        where p.page_id = w.id
        returning p.page_id, p.host_id
    ),
    -- A page may still have a place in the queue. That is checked when the inbox is drained.
    entered as (
        insert into inbox (host_id, page_id, revived) select host_id, page_id, true from revived
        returning 1
    )
    select count(*)::int from entered
$$;

-- Whether a new frequency may make a page due earlier. It may if the due time follows from the old frequency, or from a
-- hint or fetch_now. After a hint or fetch_now it must not make the page due later: see due_follows_frequency(). All
-- other due times have another reason: a caller set them, attempts failed, or robots.txt denies the page.
create or replace function may_become_due_earlier(p page) returns boolean
language sql immutable parallel safe
return p.state = 'live' and p.fetched_at is not null and p.due_at is not null
       and p.attempts = 0 and p.is_denied is null and p.due_is is null;

-- Whether the due time of a page follows from its frequency alone.
create or replace function due_follows_frequency(p page) returns boolean
language sql immutable parallel safe
return may_become_due_earlier(p) and p.planned_due is null;
