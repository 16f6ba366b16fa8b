-- The lease of a page. No index leads from a page to its lease. If the queue has no row with page.due_at of this page,
-- the page may be leased. Then all leases with a higher id than page.last_lease are searched, at .6 µs each.

-- The newest lease of a page, running or ended; no row = it has no lease.
create or replace function lease_of(p page)
returns table (
    lease_id bigint, handed_out_at timestamptz, lease_until timestamptz, slot timestamptz, start_by timestamptz
)
language sql stable rows 1 as $$
-- plans: lookups
    select l.lease_id, l.handed_out_at, l.lease_until, l.slots[i.place], l.start_bys[i.place]
    from lease l
    cross join lateral (select width_bucket(p.page_id, l.page_ids) as place) i
    where l.lease_id > coalesce(p.last_lease, 0) and l.page_ids[i.place] = p.page_id
    order by l.lease_id desc
    limit 1
$$;

-- Explains a page that is leased; no row = it has no running lease.
create or replace function explain_lease(t timestamptz, p page) returns setof recrawl.explanation
language sql stable as $$
    select 'now', 'leased',
           format('A crawler has it: handed out %s ago with lease %s, %s. If it is not reported within %s, the lease '
                  'ends%s.',
                  in_words(t - handed_out_at), lease_id,
                  case when slot > t then format('with a slot in %s', in_words(slot - t))
                       else 'and its slot has begun' end,
                  in_words(lease_until - t),
                  case when p.state = 'live' then ' and it is handed out again' else '' end),
           null,
           jsonb_build_object('lease_id', lease_id, 'handed_out_at', handed_out_at, 'fetch_at', slot,
                              'start_by', least(start_by, lease_until), 'lease_until', lease_until)
    from lease_of(p)
    where lease_until > t
$$;

-- The place of a live page: in the queue of revisits, among the new pages, leased, coming back from an ended lease, or
-- in the inbox.
create or replace function place_of(t timestamptz, p page) returns text
language sql stable as $$
-- plans: lookups
    select case
        when exists (select from queue q where (q.host_id, q.due_at, q.page_id) = (p.host_id, p.due_at, p.page_id))
            then 'queue'
        when exists (select from new_page n
                     where (n.host_id, n.rank, n.page_id) = (p.host_id, -p.value, p.page_id) and p.due_at is null)
            then 'new'
        else coalesce((select case when l.lease_until > t then 'leased' else 'coming back' end from lease_of(p) l),
                      'inbox') end
$$;
