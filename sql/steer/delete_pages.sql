-- delete_pages: removes pages as if they had never been known. The next link to a deleted page, or add_pages, brings
-- the page back. keep_out() keeps it out instead.

-- Deleted pages leave their leases. They leave the queue and the graph as kept_out pages do: see take_out(). A later
-- report of such a page gets unknown_page. A one_at_a_time host waits until the lease would have ended, because the
-- request may be running.
--
-- next_pages locks no page. If it hands out a page while the page is being deleted, the lease keeps the page until the
-- lease ends. The row in the queue is deleted when its turn comes. Until then host.pages counts the page.
create or replace function recrawl.delete_pages(page_ids bigint[]) returns int
language plpgsql volatile security definer as $$
-- plans: lookups; writes page, inbox, moved_back; locks lease, page by id, moved_back, link, page_score by id
declare
    leases bigint[];                   -- leases that have any of the pages
    held   record;
    gone   int;
begin
    perform check_isolation('delete_pages');
    leases := array(
        select l.lease_id from lease l
        where exists (
            select from unnest(l.page_ids) as i (page_id)
            where (i.page_id in (select unnest(delete_pages.page_ids))) is true)
        order by l.lease_id, l.round
        for update);
    perform from page p where p.page_id = any (page_ids) order by p.page_id for update;
    for held in
        select l.lease_id, array_agg(l.page_id) as page_ids, array_agg(p.host_id) as host_ids,
               array_agg(l.held_due) as held_dues
        from (select lease_id, unnest(lease.page_ids) as page_id, unnest(lease.held_dues) as held_due
              from lease where lease_id = any (leases)) l
        cross join lateral (
            select p.host_id from page p
            where p.page_id = l.page_id and coalesce(p.last_lease, 0) < l.lease_id
            offset 0
        ) p
        where (l.page_id in (select unnest(delete_pages.page_ids))) is true
        group by l.lease_id
    loop
        perform leave_lease(held.lease_id, held.page_ids);
        insert into inbox (host_id, page_id, old_due)
        select * from unnest(held.host_ids, held.page_ids, held.held_dues);
    end loop;
    delete from moved_back m where m.page_id = any (page_ids);
    perform take_out(page_ids, 'kept_out');    -- takes them out of the queue; the next statement deletes their rows
    delete from page p where p.page_id = any (page_ids);
    get diagnostics gone = row_count;
    perform note_event(clock_timestamp(), 'pages', format('%s pages', gone), 'deleted') where gone > 0;
    return gone;
end $$;
comment on function recrawl.delete_pages is
    'Deletes pages as if they had never been in the crawl. Returns the number of deleted pages. A later link or '
    'add_pages adds such a page again, as a new page.';
grant execute on function recrawl.delete_pages to recrawl_operator;
