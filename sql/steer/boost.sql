-- boost: multiplies the value of the pages that match a pattern. New pages get the boost when they are taken in. Known
-- pages get it in steps of a limited number of pages, so that no transaction is long and a report waits for at most one
-- step.

-- Applies all boosts to the pages of a range of ids that match a pattern. Returns how many of them are live.
create or replace function boost_pages(pattern text, after bigint, upto bigint) returns bigint
language plpgsql volatile as $$
-- plans: lookups
declare
    matching bigint[];
    boosts   real[];
    live     bigint;
begin
    select array_agg(p.page_id), array_agg(b.boost), count(*) filter (where p.state = 'live')
    into matching, boosts, live
    from (select page_id, state, canonical_of(url) as canonical from page
          where page_id > after and page_id <= upto offset 0) p
    left join lateral boost_of(p.canonical) b on true
    where p.canonical ~ boost_pages.pattern;
    perform put_values(matching, null, boosts);
    return live;
end $$;

create or replace function boost_at(t timestamptz, pattern text, factor float8) returns bigint
language plpgsql volatile as $$
-- plans: lookups; writes boost; locks boost, page by id
declare
    newest constant bigint := (select last_value from page_id);
    live   bigint;
begin
    perform check_pattern('boost', pattern);
    lock table boost in share update exclusive mode;    -- two boosts at once would not see each other
    perform refuse(format('boost: factor must lie between 1e-6 and 1e6, or be null, got %s', factor))
    where factor not between 1e-6 and 1e6;
    if factor is distinct from 1 and factor is not null then
        insert into boost as b (pattern, factor, since) values (boost_at.pattern, boost_at.factor, t)
        on conflict on constraint boost_pkey do update set
            factor = excluded.factor, since = t, done_to = null, last_page = null, pages = 0, in_force_at = null;
    else
        update boost b set factor = null, since = t, done_to = null, last_page = null, pages = 0, in_force_at = null
        where b.pattern = boost_at.pattern and b.factor is not null;
        if not found then
            perform refuse(format('boost: %L is not boosted', left(pattern, 200)));
        end if;
    end if;
    -- In a small crawl the values change at once. A worker looks at all pages again later, and deletes an ended boost.
    if newest <= 10000 then
        live := boost_pages(pattern, 0, newest);
        update boost b set pages = live where b.pattern = boost_at.pattern;
    end if;
    perform note_event(t, 'pages', pattern, case
                when factor = 1 or factor is null then 'no longer boosted'
                else format('boosted: worth %s times as much', factor::real) end
                || coalesce(', ' || live || ' pages', '')),
            ask_for_allocation(t);
    return live;
end $$;

create or replace function recrawl.boost(pattern text, factor float8) returns bigint
language sql volatile security definer as $$
    select check_isolation('boost');
    select boost_at(clock_timestamp(), pattern, factor)
$$;
comment on function recrawl.boost is
'Multiplies the value of all pages that match a pattern, also of pages that are found later. Returns the number of
matching pages that are in the crawl now. If the crawl has more than 10,000 pages, it returns null, and a worker updates
the pages in steps: the view boosts shows the progress.

* pattern: a POSIX regular expression. It is compared with the canonical URL, the spelling that all spellings of one
  URL are reduced to.
* factor: from 1e-6 to 1e6. null or 1 ends the boost.

If a page matches several patterns, the factors are multiplied. The factor also applies to values that add_pages or
set_value gave.';
grant execute on function recrawl.boost to recrawl_operator;

-- One step of applying a boost to known pages. Returns the number of page ids that were looked at; 0 if there is
-- nothing to do, or nothing that can be done now. Only one worker at a time may do this: otherwise a worker that read
-- the boosts earlier could overwrite the values of a worker that read them later.
create or replace function follow_boosts(most int) returns int
language plpgsql volatile security definer set lock_timeout = '300ms' as $$
-- plans: lookups; writes boost; locks boost, exclusion, page by id
declare
    this  boost;
    done  bigint;                      -- pages up to this page_id have the boost
    upto  bigint;
begin
    if not exists (select from boost where in_force_at is null) then
        return 0;
    end if;
    lock table boost in share update exclusive mode nowait;    -- not an advisory lock: any login could hold that
    select * into this from boost b
    where b.in_force_at is null order by b.since limit 1;
    if this.pattern is null then
        return 0;
    end if;
    this.last_page := coalesce(this.last_page, newest_taken_in());
    if this.done_to is null then
        this.pages := 0;
    end if;
    done := coalesce(this.done_to, 0);
    upto := least(done + most, this.last_page);
    update boost b
    set done_to = upto, last_page = this.last_page, pages = this.pages + boost_pages(this.pattern, done, upto)
    where b.pattern = this.pattern;
    if upto = this.last_page then
        update boost b set in_force_at = clock_timestamp() where b.pattern = this.pattern;
        delete from boost b where b.pattern = this.pattern and b.factor is null;
        perform ask_for_allocation(clock_timestamp());
    end if;
    return greatest(upto - done, 1);
exception when lock_not_available then
    return 0;              -- another worker does it, or a transaction is adding pages or has locked one of these pages
end $$;
grant execute on function follow_boosts to recrawl_worker;
