-- The search path of functions, and how they are planned. A function with «return» or «begin atomic» has no path of its
-- own: its names are bound already, and with a path it would not be inlined.
--
-- Each function that reads tables (other than setting) says its kind of plan in its first line: «-- plans: lookups», or
-- another kind below. A never-analysed table and a generic plan must not hurt, and costs must not grow with the tables.
-- The line also names the tables that the function writes and the rows that it locks. «locks new keys»: it inserts
-- hosts, pages or links, and waits for another transaction that inserts the same host name or URL.
--
--     lookups   nested loops over indexes and nothing else
--     hashes    the same, where sets that are in memory are joined with each other too
--     inherited no kind of its own: the function is called by one that has declared a kind
--     whole     reads tables from end to end, or samples them: any plan, without JIT, which costs more than it saves
--
-- «where host_id between id and id order by host_id desc limit 1» finds the same row as «where host_id = id». It reads
-- the versions of the row backwards, usually the newest first. While a transaction or a backup holds a snapshot,
-- nothing removes old versions, and each visit of a host leaves one. With «=», a report would read all versions: 40
-- times as much after 800 visits.

do $$
declare
    kinds constant jsonb := '{
        "lookups": {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off",
                    "enable_mergejoin": "off", "enable_hashjoin": "off", "jit": "off"},
        "hashes":  {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off",
                    "enable_mergejoin": "off", "enable_memoize": "off", "jit": "off"},
        "inherited": {},
        "whole":   {"jit": "off"}
    }';
    f record;
begin
    for f in
        select p.oid::regprocedure as signature,
               (select string_agg(format('set %I = %L', s.key, s.value), ' ')
                from jsonb_each_text(kinds -> substring(p.prosrc from '^\s*-- plans: (\w+)')) s) as settings
        from pg_proc p
        where p.pronamespace in ('recrawl'::regnamespace, 'recrawl_internal'::regnamespace) and p.prosqlbody is null
    loop
        execute format('alter function %s set search_path = recrawl_internal, pg_temp %s', f.signature, f.settings);
    end loop;
end $$;
