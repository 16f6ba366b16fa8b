-- boosts: the boosts, and how many pages each has reached.

create or replace view recrawl.boosts as
select pattern, factor, since, pages,
       case when in_force_at is not null then 1
            else coalesce(least(done_to, last_page)::float8 / nullif(last_page, 0), 0) end::real as progress,
       in_force_at
from boost
order by since, pattern;
select describe_view('recrawl.boosts',
    'One row for each pattern that multiplies the value of pages. boost() sets them.',
    'progress', 'The share of all pages that a worker has looked at so far, 0 to 1.');
