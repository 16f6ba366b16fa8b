-- Taking pages out. Their rows stay, so that the next link to them does not bring them back.

-- Dead pages leave the queue by the inbox. One that is leased, or whose place is not known, is dropped when its turn comes.
create or replace function recrawl_internal.bury(doomed bigint[], as_state recrawl_internal.page_state) returns int
language sql volatile
set search_path = recrawl_internal, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
as $$
    with dead as (
        select p.page_id, p.host_id, p.due_at, p.value
        from (select distinct id from unnest(doomed) as id) d
        join page p on p.page_id = d.id
        where p.state = 'live' or as_state = 'forgotten' and p.state <> 'forgotten'
        order by p.page_id
        for update of p
    ),
    buried as (
        update page p set state = as_state from dead d where p.page_id = d.page_id
        returning d.*
    ),
    told as (
        insert into inbox (host_id, page_id, old_due, old_rank)
        select host_id, page_id, due_at, case when due_at is null then -value end from buried
    ),
    told_graph as (
        insert into graph_news (page_id) select page_id from buried where not (select is_news_full())
    )
    select count(*)::int from buried
$$;
comment on function recrawl_internal.bury(bigint[], recrawl_internal.page_state) is 'Takes pages out of the queue for good; returns how many.';

create or replace function recrawl.forget(page_ids bigint[]) returns int
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
declare
    buried int;
begin
    perform check_isolation('forget');
    buried := bury(page_ids, 'forgotten');     -- pages before links, as report does
    delete from link where page_id = any (page_ids);
    perform from page_score where page_id = any (page_ids) order by page_id for update;     -- in order, as put_scores does
    delete from page_score where page_id = any (page_ids);
    return buried;
end $$;
comment on function recrawl.forget(bigint[]) is 'Takes pages out and keeps them out: a later link or add_pages does not bring them back. Returns how many.';
