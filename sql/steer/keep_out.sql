-- keep_out: takes pages out. Their rows stay, so that the next link to them does not bring them back.

-- Takes pages out of the crawl: as_state is excluded or kept_out. Returns how many. The pages leave the queue through
-- the inbox: a leased page when it is reported or released, or when its lease ends. If a row of the queue is still
-- left, next_pages deletes it when its turn comes. Pages that are kept_out also leave the graph, with their links and
-- scores; excluded pages keep both, because they may come back.
create or replace function take_out(doomed bigint[], as_state text) returns int
language plpgsql volatile as $$
-- plans: lookups; writes page, inbox, link, page_score; locks page by id, link, page_score by id
declare
    gone int;
begin
    with
    -- The pages that are not taken out yet.
    dead as (
        select p.page_id, p.host_id, p.due_at, p.value
        from (select distinct id from unnest(doomed) as id) d
        join page p on p.page_id = d.id
        where p.state = 'live' or as_state = 'kept_out' and p.state <> 'kept_out'
        order by p.page_id
        for update of p
    ),
    -- Their rows get the new state.
    written as (
        update page p set state = as_state from dead d where p.page_id = d.page_id
        returning d.*
    ),
    -- The inbox takes them out of the queue.
    entered as (
        insert into inbox (host_id, page_id, old_due, old_rank)
        select host_id, page_id, due_at, case when due_at is null then -value end from written
    )
    select count(*) into gone from written;
    if as_state = 'kept_out' then
        delete from link where page_id = any (doomed);     -- locks links after pages, as report() does
        perform from page_score where page_id = any (doomed) order by page_id for update;
        delete from page_score where page_id = any (doomed);
    end if;
    return gone;
end $$;

create or replace function recrawl.keep_out(page_ids bigint[]) returns int
language plpgsql volatile security definer as $$
-- plans: lookups; locks page by id, link, page_score by id
declare
    gone int;
begin
    perform check_isolation('keep_out');
    gone := take_out(page_ids, 'kept_out');
    perform note_event(clock_timestamp(), 'pages', format('%s pages', gone), 'kept_out') where gone > 0;
    return gone;
end $$;
comment on function recrawl.keep_out is
    'Removes pages permanently: no later link and no add_pages brings them back. Returns the number of removed '
    'pages.';
grant execute on function recrawl.keep_out to recrawl_operator;
