-- Checks the patterns that people give to exclude and boost.

-- Raises if a pattern is no regular expression, or is too slow or too large. Every URL that is found is matched with
-- every pattern. Usual patterns take 2 to 60 microseconds. A pattern of 200 complicated alternatives takes 8
-- milliseconds. The time of a match may double with each character of the URL, and a function cannot set a time limit
-- for a single match. So the pattern is tried on the beginnings of URLs, the shortest first, each a tenth longer than
-- the last. Of three tries the fastest counts, because other processes may have disturbed the others.
create or replace function check_pattern(verb text, pattern text) returns void
language plpgsql volatile as $$
-- plans: lookups
declare
    most  constant float8 := 0.5;      -- milliseconds for a URL
    began timestamptz;
    took  float8;                      -- milliseconds
    url   text;
begin
    perform refuse(format('%s: pattern must not be empty', verb)) where coalesce(pattern, '') = '';
    -- The pattern is the key of its table, and an index refuses longer keys. A long pattern also takes long to compile,
    -- once in each session.
    if octet_length(pattern) > 2600 then
        perform refuse(format('%s: pattern must have at most 2,600 bytes, got %s: use several patterns',
                              verb, grouped(octet_length(pattern))));
    end if;
    for url in
        select left(u, n) from (
            select 'http://example.com/' || repeat('a/b-1?', 400)
            union all
            select canonical_of(p.url) from (select p.url from page p order by p.page_id desc limit 5) p) s (u),
            (select (18 * 1.1 ^ i)::int from generate_series(0, 50) i) lengths (n)
        where n < 1.1 * length(u)
        order by n
    loop
        took := 'infinity';
        for nth in 1 .. 3 loop
            began := clock_timestamp();
            perform url ~ pattern;
            took := least(took, 1000 * date_part('epoch', clock_timestamp() - began));
        end loop;
        if took > most then
            perform refuse(format('%s: pattern is too slow, it takes %s ms for a URL and at most %s ms are allowed: %L',
                                  verb, round(took::numeric, 2), most, left(pattern, 200)));
        end if;
    end loop;
exception
    when invalid_regular_expression then
        perform refuse(format('%s: pattern must be a regular expression, got %L: %s',
                              verb, left(pattern, 200), left(sqlerrm, 200)));
    when internal_error or program_limit_exceeded or out_of_memory then
        perform refuse(format('%s: pattern is too large for PostgreSQL: %L', verb, left(pattern, 200)));
end $$;
