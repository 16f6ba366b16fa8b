-- Numbers that are used in more than one place. Those that Python also uses are in recrawl.model.limits or
-- recrawl.client too. A test compares both.

-- The upper limit of the setting max_ahead. In the queue a leased page is due at least this long after the end of its
-- lease, so that calls with a look-ahead do not find the page.
create or replace function longest_ahead() returns interval
language sql immutable parallel safe
return interval '10 minutes';

-- The number of links of a page that are read. A page with more links is probably a trap, so the rest is ignored.
create or replace function most_links() returns int
language sql immutable parallel safe
return 10000;

-- The number of values in a min-hash sketch.
create or replace function sketch_values() returns int
language sql immutable parallel safe
return 8;

-- The relevance that is assumed for a page if its relevance is not known.
create or replace function unknown_relevance() returns float8
language sql immutable parallel safe
return 0.5::float8;

-- Whether a score or a value has changed by more than a hundredth.
create or replace function has_moved(now float8, before float8) returns boolean
language sql immutable parallel safe
return abs(now - before) > 0.01 * before;

-- Whether a time lies between 1970 and 2200. Callers refuse or ignore other times, or store infinity instead. Far
-- outside this range, a time plus an interval does not fit in a timestamptz, or the language of a client cannot read
-- the time. The range is a day wider at both ends because of time zones.
create or replace function within_reach(t timestamptz) returns boolean
language sql immutable parallel safe
return t between timestamptz '1969-12-31 00:00+00' and timestamptz '2200-01-02 00:00+00';

-- The smallest time that means "never". It replaces infinity for clients that cannot read infinity or compute with it.
create or replace function for_ever() returns timestamptz
language sql immutable parallel safe
return timestamptz '9999-12-01 00:00+00';

-- The error message for a due time that a caller gave; null = the due time is valid.
create or replace function problem_with_due(due timestamptz) returns text
language sql stable parallel safe      -- like format(); otherwise it would not be inlined
return case when not (within_reach(due) or due = 'infinity')
            then format('due must lie between 1970 and 2200, or be infinity, got %s', due) end;

-- The smallest value or rate above 0. See problem_with_amount().
create or replace function least_amount() returns float8
language sql immutable parallel safe
return 1e-30::float8;

-- The largest value or rate.
create or replace function most_amount() returns float8
language sql immutable parallel safe
return 1e30::float8;

-- The reason why some languages could not read a meta; null = all can read it. Python reads no whole number of more
-- than 4,300 digits, and no JSON of more than about 990 levels (fewer, if its caller is deep in nested function calls).
-- Java's Jackson stops at 1,000 levels.
create or replace function problem_with_meta(meta jsonb) returns text
language sql immutable parallel safe
return case when jsonb_path_exists(meta, 'strict $.**{100}')
                 or jsonb_path_exists(meta, 'strict $.** ? (@ > 1e308 || @ < -1e308)')
            then 'meta must be nested at most 100 levels deep, with numbers between -1e308 and 1e308' end;
