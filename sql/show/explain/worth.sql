-- Explains the last report of a page, how often it is fetched and why, how often it changes, and its value.

-- Explains the last report of a page.
create or replace function explain_last(t timestamptz, p page) returns setof recrawl.explanation
language sql stable as $$
    select 'last', case o.outcome when 'none' then 'never_reported' else 'last_' || o.outcome end,
           case o.outcome
               when 'none' then 'It was never reported'
               when 'fetched' then format('Fetched %s ago, status %s', in_words(t - p.reported_at), p.last_status)
               when 'denied' then format('Reported %s ago: robots.txt forbids it', in_words(t - p.reported_at))
               when 'throttled' then format('Requested %s ago: its host asked for fewer requests, status %s',
                                            in_words(t - p.reported_at), p.last_status)
               else format('Requested %s ago without success: %s', in_words(t - p.reported_at),
                           case when p.last_status > 0 then 'status ' || p.last_status else 'no answer' end) end
           || case when p.fetched_at is not null and o.outcome <> 'fetched'
                   then format('; last fetched %s ago', in_words(t - p.fetched_at)) else '' end
           || case when p.attempts > 0 then format('; %s in a row failed or %s not reported',
                                                   how_many(p.attempts, 30000, 'attempt'),
                                                   case p.attempts when 1 then 'was' else 'were' end) else '' end
           || case when p.successes = 1 then '. It was fetched once'
                   when p.successes > 1 then format('. %s found %s',
                                                    how_many(p.successes, 2147483647, 'fetch'),
                                                    how_many(p.changes, 2147483647, 'change')) else '' end || '.',
           null,
           jsonb_build_object('reported_at', p.reported_at, 'last_status', p.last_status, 'fetched_at', p.fetched_at,
                              'successes', p.successes, 'changes', p.changes, 'attempts', p.attempts)
    from (select last_outcome(p) as outcome) o
$$;

select make_type('fetching', '(
    p page, h host, s setting, own host_terms, common host_terms, a allocation, rate float8, frequency float8)',
    'All that decides how often a page is fetched: the page, its host, the settings, the terms of its host and of all '
    'hosts, the last allocation, and the rate and the frequency of the page.');

-- A value at which a page would be fetched more often; null = no value would help. How much the value of a page must
-- rise before it is fetched more often depends on the objective. So values are tried, each four times the one before.
create or replace function value_for_more(f fetching) returns float8
language sql stable as $$
    select v.value
    from generate_series(0, 49) as k
    cross join lateral (select greatest((f.p).value, 0.01)::float8 * 2 * 4.0 ^ k as value offset 0) v
    cross join lateral frequency_in_force(f.own, f.common, highest_frequency(f.s), v.value, f.rate) more
    where v.value < most_amount() and more.frequency > f.frequency * 1.05
    limit 1
$$;

-- The code for what decides how often a page is fetched.
create or replace function why_so_often(f fetching) returns text
language plpgsql stable as $$
declare
    p           constant page := f.p;
    s           constant setting := f.s;
    own         constant host_terms := f.own;
    common      constant host_terms := f.common;
    a           constant allocation := f.a;
    price       constant float8 := coalesce(own.price, common.price);
    least_often constant float8 := coalesce(own.min_frequency, common.min_frequency, 0);
    takes_part  constant boolean :=
        takes_part(p.state, p.attempts, s.max_attempts, p.fetched_at, p.pinned_rate, p.due_is);
begin
    return case
        when p.due_is in ('done', 'declined') then 'resting'
        when not takes_part and p.attempts >= s.max_attempts then 'resting'
        when takes_part and own.price = 'Infinity' and own.is_capped and own.pins_kept = 0 then 'closed'
        when p.pinned_interval < s.shortest_interval then 'shortest_interval'
        when p.pinned_interval is not null and f.frequency < times_per_day(p.pinned_interval) * (1 - 1e-6)
            then 'pinned_less'
        when p.pinned_interval is not null then 'pinned'
        when not takes_part then 'first_fetch'
        when price is null and p.frequency is null and p.pinned_rate is not null then 'as_it_changes'
        when price is null then 'unallocated'
        when f.frequency >= highest_frequency(s) * (1 - 1e-9) then 'shortest_interval'
        when f.frequency < 1e-9 and a.policy <> 'best_first'
             and a.for_revisits - coalesce(a.pinned, 0) <= 1e-9 * a.budget then 'nothing_left'
        when common.objective = 'proportional'
             or common.price = 'Infinity' and a.policy in ('uniform', 'best_first', 'epsilon_greedy') then 'policy'
        when f.frequency <= 0 then 'never'
        when f.frequency <= least_often * (1 + 1e-9)
             and least_often <= 86400 / date_part('epoch', s.longest_interval) * (1 + 1e-6) then 'longest_interval'
        when f.frequency <= least_often * (1 + 1e-9) then 'exploration'
        when own.is_capped then 'capped'
        else 'price' end;
end $$;

-- The rate and the value of a page, in words.
create or replace function worth_in_words(f fetching) returns text
language sql stable as $$
    select format('It changes %s, and its value is %s (the average is 1)', often_in_words(f.rate), amount((f.p).value))
$$;

-- Explains how often a page is fetched if a price decides, and what would change that.
create or replace function often_by_price(f fetching, code text, out says text, out fix text)
language plpgsql stable as $$
declare
    h       constant host := f.h;
    p       constant page := f.p;
    s       constant setting := f.s;
    own     constant host_terms := f.own;
    common  constant host_terms := f.common;
    visited constant text := 'It is fetched ' || often_in_words(f.frequency);
    worth   constant text := worth_in_words(f);
    more    constant float8 := value_for_more(f);
    raise_value constant text := case when more is not null then
        format('SELECT recrawl.set_value(%s, %s);', p.page_id, short_number(plain_value(more, p.boost, null))) end;
begin
    select c.says, c.fix into says, fix
    from (values
        ('price',
         format('%s. %s. One more fetch a day would gain less than the price of %s, which a fetch gains elsewhere.',
                visited, worth, amount(coalesce(own.price, common.price))),
         raise_value),
        ('capped',
         format('%s. %s. The gap limits its host: there is one slot every %s for %s pages. So the price of a fetch is '
                '%s there%s.',
                visited, worth, in_words(slot_every(h, s)), grouped(h.pages), amount(own.price),
                ', and ' || amount(common.price) || ' on other hosts'),
         halved_gap(h, s)),
        ('exploration',
         format('%s. %s. A fetch gains less than its price of %s. So it gets only the share of the budget that goes to '
                'all pages (the setting exploration).',
                visited, worth, amount(coalesce(own.price, common.price))),
         raise_value),
        ('longest_interval',
         format('%s, %s. %s. A fetch gains less than its price of %s.',
                visited,
                case when f.frequency >= times_per_day(s.longest_interval) * (1 - 1e-6)
                     then 'because no page waits longer (the setting longest_interval)'
                     else 'which is longer than the setting longest_interval, because that gets at most half of the '
                          'budget and half of the slots of its host' end,
                worth, amount(coalesce(own.price, common.price))),
         raise_value),
        ('never',
         format('It is never fetched, or almost never. %s. A fetch gains less than its price of %s, and the settings '
                'exploration and longest_interval give it none.', worth, amount(coalesce(own.price, common.price))),
         raise_value)
    ) as c (for_code, says, fix)
    where c.for_code = code;
end $$;

-- Explains how often a page is fetched if a setting, an operator or a limit decides, and what would change that.
create or replace function often_by_rule(t timestamptz, f fetching, code text, out says text, out fix text)
language plpgsql stable as $$
declare
    h       constant host := f.h;
    p       constant page := f.p;
    s       constant setting := f.s;
    own     constant host_terms := f.own;
    common  constant host_terms := f.common;
    a       constant allocation := f.a;
    visited constant text := 'It is fetched '
                             || often_in_words(coalesce(f.frequency, times_per_day(p.pinned_interval)));
begin
    select c.says, c.fix into says, fix
    from (values
        ('policy',
         format('%s, independent of its value: the policy in force (the setting policy) %s.',
                case when f.frequency > 1e-9 then visited else 'It is never fetched again' end,
                case when common.objective = 'proportional' then 'fetches pages in proportion to how often they change'
                     when f.frequency > 1e-9 then
                         case when a.policy = 'epsilon_greedy' then 'at first ' else '' end
                         || 'fetches all pages equally often, within the gaps'
                     else 'fetches each page once' end),
         'SELECT recrawl.set_setting(''policy'', ''opt_polite'');'),
        ('closed',
         'It has no share of the budget: when the budget was last divided, the block of its host still had more than a '
         'day to run.',
         case when h.blocked_until > t then format('SELECT recrawl.unblock_host(%L);', h.name)
              else 'recrawl run allocate' end),
        ('nothing_left',
         format('It has no share of the budget of %s fetches a day: %s are for new pages, %s for pinned pages and %s '
                'for retries.',
                amount(a.budget), amount(a.for_new), amount(coalesce(a.pinned, 0)), amount(coalesce(a.for_retries, 0))),
         case when a.for_new > coalesce(a.pinned, 0) + coalesce(a.for_retries, 0)
              then format('SELECT recrawl.set_setting(''discovery'', ''%s'');', short_number(s.discovery / 2))
              else format('SELECT recrawl.set_setting(''budget'', ''%s'');', short_number(2 * a.budget)) end),
        ('shortest_interval',
         format('%s, because no page is fetched more often (the setting shortest_interval). %s.',
                visited, worth_in_words(f)),
         case when s.shortest_interval > interval '1 second' then
             format('SELECT recrawl.set_setting(''shortest_interval'', ''%s seconds'');',
                    seconds_to_type(greatest(interval '1 second', s.shortest_interval / 2))) end),
        ('as_it_changes',
         format('%s, as often as it changes by its pinned rate: it is in no allocation yet.', visited),
         'recrawl run allocate'),
        ('unallocated',
         format('%s, by the setting frequency: it is in no allocation yet.', visited),
         'recrawl run allocate'),
        ('pinned',
         format('%s: this interval was set with set_interval.', visited),
         format('SELECT recrawl.set_interval(''{%s}'', NULL);', p.page_id)),
        ('pinned_less',
         format('%s. It is pinned to %s, but %s not enough for all pinned intervals. Each gets its share.',
                visited, often_in_words(times_per_day(p.pinned_interval)),
                case when own.pins_kept is null then 'the budget is' else 'the slots of its host are' end),
         case when own.pins_kept is not null then halved_gap(h, s)
              when s.budget is null or s.budget > a.budget then 'recrawl run allocate'
              else format('SELECT recrawl.set_setting(''budget'', ''%s'');', short_number(2 * a.budget)) end),
        ('first_fetch',
         'Not decided yet, because it was never fetched.',
         null),
        ('resting',
         case when p.due_is in ('done', 'declined') then 'It has no share of the budget, because it is not wanted.'
              else format('It has no share of the budget, because %s in a row failed or were not reported.',
                          how_many(p.attempts, 30000, 'attempt')) end,
         format('SELECT recrawl.fetch_now(''{%s}'');', p.page_id))
    ) as c (for_code, says, fix)
    where c.for_code = code;
end $$;

-- Explains how often a page is fetched.
create or replace function explain_often(t timestamptz, p page, h host, s setting, rate float8, frequency float8)
returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    own     host_terms;
    common  host_terms;
    a       allocation;                -- the last one
    f       fetching;
    code    text;
    answer  record;
begin
    select * into common from host_terms t where t.host_id = 0;
    select * into own from host_terms t where t.host_id = p.host_id;
    select * into a from allocation r order by r.token desc limit 1;
    f := (p, h, s, own, common, a, rate, frequency);
    code := why_so_often(f);
    if code in ('price', 'capped', 'exploration', 'longest_interval', 'never') then
        answer := often_by_price(f, code);
    else
        answer := often_by_rule(t, f, code);
    end if;
    return query
    select 'often', code, answer.says, answer.fix,
           jsonb_build_object('frequency', frequency, 'followed', p.frequency,
                              'price', coalesce(own.price, common.price), 'common_price', common.price,
                              'min_frequency', coalesce(own.min_frequency, common.min_frequency),
                              'is_capped', own.is_capped, 'objective', common.objective,
                              'interval_days', 1 / nullif(frequency, 0), 'pinned_interval', p.pinned_interval);
end $$;

-- Explains how often a page changes.
create or replace function explain_rate(p page, rate float8, rate_low float8, rate_high float8)
returns setof recrawl.explanation
language sql stable as $$
    select 'changes', c.code, c.says, c.fix,
           jsonb_build_object('rate', rate, 'rate_low', rate_low, 'rate_high', rate_high,
                              'seen_changes', p.seen_changes, 'seen_days', p.seen_days)
    from (values
        ('rate_pinned',
         format('It changes %s: this rate was set with set_rate or add_pages.', often_in_words(p.pinned_rate)),
         format('SELECT recrawl.set_rate(%s, NULL);', p.page_id),
         p.pinned_rate is not null),
        ('rate_learned',
         format('It changes %s, learned from %s. With a probability of 90 %% the truth is between %s and %s.',
                often_in_words(rate), how_many(p.successes, 2147483647, 'fetch'), often_in_words(rate_low),
                often_in_words(rate_high)),
         null,
         p.seen_days > 0),
        ('rate_guessed',
         format('It changes %s, a guess from other pages: no two fetches of it could be compared yet.',
                often_in_words(rate)),
         null,
         true)
    ) as c (code, says, fix, applies)
    where c.applies
    limit 1
$$;

-- Explains the value of a page.
create or replace function explain_value(p page, hub real, authority real, importance real)
returns setof recrawl.explanation
language sql stable as $$
    select 'value', c.code,
           c.says || case when p.boost is not null
                          then format(' Boosts of its URL multiplied the value by %s.', amount(p.boost))
                          else '' end,
           c.fix,
           jsonb_build_object('value', p.value, 'pinned_value', p.pinned_value, 'boost', p.boost, 'hub', hub,
                              'authority', authority, 'importance', importance,
                              'relevance', coalesce(p.pinned_relevance, p.relevance), 'depth', p.depth)
    from (values
        ('value_pinned',
         format('Its value is %s (the average is 1): it was set with set_value or add_pages.', amount(p.value)),
         format('SELECT recrawl.set_value(%s, NULL);', p.page_id),
         p.pinned_value is not null),
        ('value_scored',
         format('Its value is %s (the average is 1), computed from links: authority %s, hub %s.',
                amount(p.value), amount(authority), amount(hub)),
         null,
         authority is not null),
        ('value_guessed',
         format('Its value is %s (the average is 1): a first guess, until the job opic has seen the links to it.',
                amount(p.value)),
         'recrawl run opic',
         true)
    ) as c (code, says, fix, applies)
    where c.applies
    limit 1
$$;

-- Explains how often a live page is fetched, how often it changes, and its value.
create or replace function explain_worth(t timestamptz, p page, h host, s setting) returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    known record;
begin
    select * into known from recrawl.page_status v where v.page_id = p.page_id;
    return query select * from explain_often(t, p, h, s, known.rate, known.frequency);
    return query select * from explain_rate(p, known.rate, known.rate_low, known.rate_high);
    return query select * from explain_value(p, known.hub, known.authority, known.importance);
end $$;
