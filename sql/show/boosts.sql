create or replace view recrawl.boosts as
select pattern,
       times,
       since,
       pages,
       case when in_force_at is not null then 1
            else coalesce(least(done_to, last_page)::float8 / nullif(last_page, 0), 0) end::real as done,
       in_force_at
from recrawl_internal.boost
order by since, pattern;
comment on view recrawl.boosts is 'By how much pages are worth more whose URL matches a pattern; boost() says so.';
select recrawl_internal.copy_comments('recrawl.boosts');
comment on column recrawl.boosts.times is 'By how much; null = it was ended, and a worker is about to take it back.';
comment on column recrawl.boosts.done is 'The share of the pages that was looked at so far, by a worker.';
grant select on recrawl.boosts to recrawl_reader;
