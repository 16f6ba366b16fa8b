-- Numbers that stand in more than one place. What Python must agree on is also in recrawl.model.limits; a test reads
-- both.

create or replace function recrawl_internal.longest_ahead() returns interval
language sql immutable parallel safe
begin atomic select interval '10 minutes'; end;
comment on function recrawl_internal.longest_ahead() is
    'The most that the setting max_ahead can be: a lease keeps its pages this much longer from whoever looks ahead.';

create or replace function recrawl_internal.most_links() returns int
language sql immutable parallel safe
begin atomic select 10000; end;
comment on function recrawl_internal.most_links() is 'A page with more links is a trap: the rest is not looked at.';

create or replace function recrawl_internal.sketch_values() returns int
language sql immutable parallel safe
begin atomic select 8; end;
comment on function recrawl_internal.sketch_values() is 'How many numbers a min-hash sketch has.';

create or replace function recrawl_internal.unknown_relevance() returns float8
language sql immutable parallel safe
begin atomic select 0.5::float8; end;
comment on function recrawl_internal.unknown_relevance() is
    'What counts as the relevance of a page of which none is known.';

create or replace function recrawl_internal.has_moved(now float8, before float8) returns boolean
language sql immutable parallel safe
begin atomic select abs(now - before) > 0.01 * before; end;
comment on function recrawl_internal.has_moved(float8, float8) is
    'Whether a score or value is another one: by a hundredth.';

-- Beyond, sums with gaps and intervals leave what a timestamptz holds, and what most languages can read. A day wider on
-- either side, for all time zones.
create or replace function recrawl_internal.within_reach(t timestamptz) returns boolean
language sql immutable parallel safe
begin atomic select t between timestamptz '1969-12-31 00:00+00' and timestamptz '2200-01-02 00:00+00'; end;
comment on function recrawl_internal.within_reach(timestamptz) is
    'Whether a time lies between 1970 and 2200: others are refused, or clamped.';

create or replace function recrawl_internal.for_ever() returns timestamptz
language sql immutable parallel safe
begin atomic select timestamptz '9999-12-01 00:00+00'; end;
comment on function recrawl_internal.for_ever() is
    'From here on a time never comes: infinity, for those who cannot read or reckon with it.';
grant execute on function recrawl_internal.for_ever to recrawl_reader;

create or replace function recrawl_internal.problem_with_due(due timestamptz) returns text
language sql stable parallel safe      -- as format() is: else it would not be inlined
begin atomic
    select case when not (recrawl_internal.within_reach(due) or due = 'infinity')
                then format('due must lie between 1970 and 2200, or be infinity, got %s', due) end;
end;
comment on function recrawl_internal.problem_with_due(timestamptz) is
    'What is wrong with a due time that somebody said; null = nothing.';

-- See problem_with_amount().
create or replace function recrawl_internal.least_amount() returns float8
language sql immutable parallel safe
begin atomic select 1e-30::float8; end;
comment on function recrawl_internal.least_amount() is 'The least that is not 0.';

create or replace function recrawl_internal.most_amount() returns float8
language sql immutable parallel safe
begin atomic select 1e30::float8; end;
comment on function recrawl_internal.most_amount() is 'The most that a value or a rate can be.';

-- Python reads no whole number of more than 4,300 digits, and no JSON of more than about 990 levels. It reads fewer
-- levels if its caller is deep in functions. Java's Jackson stops at 1,000 levels.
create or replace function recrawl_internal.problem_with_meta(meta jsonb) returns text
language sql immutable parallel safe
begin atomic
    select case when jsonb_path_exists(meta, 'strict $.**{100}')
                     or jsonb_path_exists(meta, 'strict $.** ? (@ > 1e308 || @ < -1e308)')
                then 'meta must be nested at most 100 levels deep, with numbers between -1e308 and 1e308' end;
end;
comment on function recrawl_internal.problem_with_meta(jsonb) is
    'Why some languages could not read a meta; null = they can.';
