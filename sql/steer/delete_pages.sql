-- Taking pages out as if they had never been: unlike forget, the next link to them, or add_pages, brings them back.

-- They leave the queue by the inbox, as in take_out(). One that is out is dropped when its turn comes, and who reports
-- it is told that there is no such page. Nobody can tell any more which host it was on: one that gives a page at a time
-- waits until the lease ends, as the request may still be under way.
create or replace function recrawl.delete_pages(page_ids bigint[]) returns int
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes page, inbox, link, page_score; locks page by id, link, page_score by id
declare
    gone bigint[];
begin
    perform check_isolation('delete_pages');
    perform from page p where p.page_id = any (page_ids) order by p.page_id for update;
    with
    -- Their rows go.
    deleted as (
        delete from page p where p.page_id = any (page_ids)
        returning p.page_id, p.host_id, p.due_at, p.value
    ),
    -- The queue loses them.
    told as (
        insert into inbox (host_id, page_id, old_due, old_rank)
        select host_id, page_id, due_at, case when due_at is null then -value end from deleted
    )
    select array_agg(page_id) into gone from deleted;
    if gone is null then
        return 0;
    end if;
    perform tell_graph(gone);
    delete from link where page_id = any (gone);
    perform from page_score where page_id = any (gone) order by page_id for update;
    delete from page_score where page_id = any (gone);
    perform note_now('pages', format('%s pages', cardinality(gone)), 'deleted');
    return cardinality(gone);
end $$;
comment on function recrawl.delete_pages(bigint[]) is
    'Takes pages out as if they had never been known: a later link or add_pages brings them back as new ones. Returns '
    'how many.';
grant execute on function recrawl.delete_pages to recrawl_operator;
