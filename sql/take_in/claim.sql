-- claim: gives the crawl an owner. Crawlers of different kinds must not share a crawl: one would not understand the
-- meta that the other keeps with its pages.

create or replace function recrawl.claim(who text) returns text
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
-- plans: lookups; writes setting; locks setting
declare
    owner text;
begin
    perform check_isolation('claim');
    if who is null or length(who) not between 1 and 200 then
        perform refuse(format('claim: who must be a name of 1 to 200 characters, got %s',
                              coalesce(quote_literal(left(who, 200)), 'null')));
    end if;
    select claimed_by into owner from setting;
    if owner is null then
        update setting set claimed_by = who where claimed_by is null;
        select claimed_by into owner from setting;
    end if;
    return owner;
end $$;
comment on function recrawl.claim(text) is
    'Says that this crawl is of somebody, such as a spider, and returns whose it is: whoever said so first. The '
    'setting claimed_by has it; none gives it up.';
grant execute on function recrawl.claim to recrawl_crawler;
