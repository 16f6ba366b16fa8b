-- hint_change: hints from outside that pages changed, for example lastmod of a sitemap or a ping. A hint counts like
-- more days since the last fetch, so the page becomes due earlier. A hint never makes a page later.
-- recrawl.lab.methods.signals has the same formula in Python.

create or replace function hint_change_at(
    t timestamptz, page_ids bigint[], recall float8, false_hints_per_day float8, changed_at timestamptz[] default null
) returns int
language plpgsql volatile as $$
-- plans: lookups; locks page by id
begin
    if recall is null or recall not between 0 and 1 then
        perform refuse(format('hint_change: recall must lie between 0 and 1, got %s', coalesce(recall::text, 'null')));
    elsif false_hints_per_day is null or false_hints_per_day not between 0 and most_amount() then
        perform refuse(format('hint_change: false_hints_per_day must lie between 0 and 1e30 hints per day, got %s',
                              coalesce(false_hints_per_day::text, 'null')));
    elsif cardinality(changed_at) <> cardinality(page_ids) then
        perform refuse(format('hint_change: changed_at must have one element for each of the %s page_ids, got %s',
                              cardinality(page_ids), cardinality(changed_at)));
    end if;

    return move_pages(array(
        select move_of(p, n.due_at, p.due_is, coalesce(p.planned_due, p.due_at), p.frequency)
        from (select id, max(at) as changed_at from unnest(page_ids, hint_change_at.changed_at) as u (id, at)
              group by id) w
        join page p on p.page_id = w.id and p.state = 'live' and p.due_at > t and not is_never(p.due_at)
                       and (w.changed_at > p.fetched_at) is not false
        cross join setting s
        cross join lateral (
            select v.rate::float8 from recrawl.page_status v where v.page_id = p.page_id offset 0
        ) r (rate)
        -- The days that a hint is worth: -ln(P(the hint is false)) / (rate of changes that come without a hint).
        cross join lateral (
            select case when least(recall, r.rate) < least_amount() then 0
                        when false_hints_per_day = 0 or recall = 1 then 36500
                        else ln(1 + recall * r.rate / greatest(false_hints_per_day, least_amount()))
                             / ((1 - recall) * r.rate) end as days
        ) a
        cross join lateral (
            select greatest(t, p.due_at - least(a.days, 36500) * interval '24 hours',
                            p.fetched_at + s.shortest_interval) as due_at
        ) n
        where n.due_at < p.due_at
        order by p.page_id
        for update of p));
end $$;

create or replace function recrawl.hint_change(
    page_ids bigint[], recall float8 default 0.9, false_hints_per_day float8 default 0.1,
    changed_at timestamptz[] default null
) returns int
language sql volatile security definer as $$
    select check_isolation('hint_change');
    select hint_change_at(clock_timestamp(), page_ids, recall, false_hints_per_day, changed_at)
$$;
comment on function recrawl.hint_change is
'Makes pages due earlier. Call it if, for example, a sitemap says that pages changed. Returns the number of pages that
became due earlier.

* page_ids: the pages. Pages that wait among the new ones or are already due, done, declined, gone, moved, excluded or
  kept_out stay as they are.
* recall: the share of all changes that such hints report, 0 to 1.
* false_hints_per_day: how many hints per day come for one page although it did not change.
* changed_at: the time of the change, one for each page; null = unknown. A page that was fetched since then stays as
  it is.

The more reliable the hints are, the earlier a page is due. The new due time is never in the past, and never less than
shortest_interval after the last fetch. A hint does not change the rate of a page.';
grant execute on function recrawl.hint_change to recrawl_crawler, recrawl_operator;
