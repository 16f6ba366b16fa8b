-- The pages and hosts that come before a page that may be fetched. A host hands out its revisits in order of due times
-- and its new pages in order of value, one per slot. Hosts compete with all other hosts. For revisits the host that has
-- been ready longest is first. For new pages the host with the best class of value is first. Pages and hosts are
-- counted up to a thousand, because each counted entry is read from an index.

-- About when a host will have handed out pages_before pages of one kind. A host gives one page in each slot. If
-- revisits and new pages wait, each kind has its share of the slots. every: the time between two slots.
create or replace function turn_comes(pages_before bigint, share float8, free_at timestamptz, every interval)
returns timestamptz
language sql stable as $$
    select free_at + make_interval(secs => least(
        date_part('epoch', every) * ceil(pages_before / greatest(share, 0.01)), 3e9))
$$;

-- When a request to a host may start, apart from blocks and leases. place_at: ready_at or new_ready_at of the host. It
-- may have been computed when the gap was longer: next_pages still waits for it. While the host is blocked or busy,
-- place_at is ignored, because explain_holds() gives that reason.
create or replace function free_from(t timestamptz, h host, s setting, place_at timestamptz) returns timestamptz
language sql stable as $$
    select readable(greatest(timestamptz 'epoch', next_slot(h, s),
                             case when greatest(h.blocked_until, h.busy_until) > t then null else place_at end))
$$;

-- Explains why a due page is not handed out.
create or replace function explain_revisit(t timestamptz, p page, h host, s setting) returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    every     constant interval := slot_every(h, s);
    most      constant int := 1000;
    free_at   constant timestamptz := free_from(t, h, s, h.ready_at);
    before    constant bigint := (     -- pages of the host that are due before
        select count(*)
        from (select from queue q
              where q.host_id = p.host_id and q.due_at between h.head_due and p.due_at
                and (q.due_at, q.page_id) < (p.due_at, p.page_id)
              limit most) b);
    share     constant float8 := case when h.new_class is not null then 1 - s.discovery else 1 end;
    turn      constant timestamptz := turn_comes(before, share, greatest(free_at, t), every);
    hosts     bigint;                  -- with due revisits, and ready before
    waits_for_crawler constant boolean := free_at <= t and (before = 0 or free_at < t - interval '10 seconds');
    figures   jsonb := jsonb_build_object(
        'due_at', p.due_at, 'pages_before', before, 'slot_every', every, 'next_slot_at', greatest(next_slot(h, s), t),
        'free_since', case when free_at <= t then free_at end, 'about', turn, 'until', turn, 'host', h.name);
begin
    if waits_for_crawler then
        hosts := (
            select count(*)
            from (select from host o
                  where o.ready_at between from_micros((select last_value from host_horizon)) and h.ready_at
                    and o.ready_at <= t and o.host_id <> h.host_id and next_slot(o, s) <= t
                  limit most) b);
        return query
        select 'now', 'crawlers',
               format('Late by %s. Its host %s is ready and has waited for a crawler for %s. %s ready for longer, and '
                      '%s due before it. Start more crawlers, or let each take more pages in one call.',
                      in_words(t - p.due_at), h.name, in_words(t - greatest(free_at, h.head_due)),
                      how_many(hosts, most, 'host') || case hosts when 1 then ' is' else ' are' end,
                      how_many(before, most, 'page') || case before when 1 then ' is' else ' are' end),
               null, figures || jsonb_build_object('hosts_before', hosts, 'until', t);
    else
        return query
        select 'now', 'host_gap',
               format('Late by %s. Its host %s has a slot every %s, and %s due before it. Its turn comes in %s%s.',
                      in_words(t - p.due_at), h.name, in_words(every),
                      how_many(before, most, 'page') || case before when 1 then ' is' else ' are' end,
                      case when before >= most then 'at least ' else 'about ' end, in_words(turn - t)),
               halved_gap(h, s), figures;
    end if;
end $$;

-- Explains why a new page is not handed out. Returns the first reason that applies. The budget is a reason in addition
-- to any other.
create or replace function explain_new(t timestamptz, p page, h host, s setting) returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    every    constant interval := slot_every(h, s);
    most     constant int := 1000;
    free_at  constant timestamptz := free_from(t, h, s, h.new_ready_at);
    before   constant bigint := (      -- new pages of the host that are worth more, or worth as much and older
        select count(*)
        from (select from new_page n
              where n.host_id = p.host_id and (n.rank, n.page_id) >= (h.head_new_rank, h.head_new_id)
                and (n.rank, n.page_id) < (-p.value, p.page_id)
              limit most) b);
    share    constant float8 := case when h.head_due <= t then s.discovery else 1 end;
    turn     constant timestamptz := turn_comes(before, share, greatest(free_at, t), every);
    better   constant int := (         -- the best class of another ready host, if it is better; null = no class is
        select min(c.class)
        from occupied_classes(0) c
        where c.class < h.new_class
          and exists (select from host o
                      where o.new_class = c.class and o.new_ready_at between c.since and t and next_slot(o, s) <= t));
    room_at  constant timestamptz := room_in_budget_from(t, s);
    revisits constant boolean := exists (          -- a ready host has a revisit that is due
        select from host o
        where o.ready_at between from_micros((select last_value from host_horizon)) and t and next_slot(o, s) <= t);
    figures  constant jsonb := jsonb_build_object(
        'value', p.value, 'class', value_class(-p.value), 'pages_before', before, 'slot_every', every,
        'next_slot_at', greatest(next_slot(h, s), t), 'about', turn, 'until', turn, 'host', h.name);
begin
    return query
    select 'now', c.code, 'New: it was never handed out. ' || c.says,
           format('SELECT recrawl.fetch_now(''{%s}'');', p.page_id),
           figures || c.more
    from (values
        ('new_place',
         format('On its host %s, %s more valuable, or as valuable and older. The host has a slot every %s. Its turn '
                'comes in %s%s.',
                h.name, how_many(before, most, 'new page') || case before when 1 then ' is' else ' are' end,
                in_words(every), case when before >= most then 'at least ' else 'about ' end, in_words(turn - t)),
         jsonb_build_object(),
         before > 0),
        ('new_share',
         'Revisits are due, and the setting discovery is 0: new pages get only the slots that revisits leave.',
         jsonb_build_object('until', greatest(t, next_slot(h, s))),
         s.discovery = 0 and revisits),
        ('new_after_revisits',
         format('Its host %s has revisits that are due, and has given its share of new pages. All other ready hosts '
                'with new pages come first.', h.name),
         jsonb_build_object('until', greatest(t, next_slot(h, s)), 'better_class', better),
         h.new_class = last_class() and better is not null),
        ('new_class',
         format('It is the first new page of its host %s. But other ready hosts have more valuable new pages: their '
                'value is at least %s, and its value is %s.', h.name, amount(-last_rank_of(better)), amount(p.value)),
         jsonb_build_object('until', greatest(t, next_slot(h, s)), 'better_class', better),
         better is not null),
        ('new_gap',
         format('It is the first new page of its host %s, which has its next slot in %s.',
                h.name, in_words(free_at - t)),
         jsonb_build_object('until', free_at),
         free_at > t),
        ('new_crawlers',
         format('It is the first new page of its host %s, which is ready and has waited for a crawler for %s.',
                h.name, in_words(t - free_at)),
         jsonb_build_object('until', t, 'free_since', free_at),
         true)
    ) as c (code, says, more, applies)
    where c.applies
    limit 1;

    if room_at > t then
        return query
        select 'now', 'new_budget',
               format('New: it was never handed out. New pages get the part of the budget of %s fetches a day that '
                      'revisits leave. The next new page is handed out in %s.',
                      amount(s.budget), in_words(room_at - t)),
               format('SELECT recrawl.fetch_now(''{%s}'');', p.page_id),
               figures || jsonb_build_object('budget', s.budget, 'until', room_at);
    end if;
end $$;

-- The statement that halves the gap of a host; null = the gap cannot be shorter.
create or replace function halved_gap(h host, s setting) returns text
language sql stable as $$
    select format('SELECT recrawl.set_host(%L, gap => ''%s seconds'');', h.name,
                  seconds_to_type(gap_of(h, s) / 2))
    where gap_of(h, s) >= interval '2 milliseconds'
$$;
