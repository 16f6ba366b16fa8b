-- claim: gives the crawl an owner. Crawlers of different kinds must not share a crawl: one would not understand the
-- meta that the other keeps with its pages.

create or replace function recrawl.claim(name text) returns text
language plpgsql volatile security definer as $$
-- plans: lookups; writes setting; locks setting
begin
    perform check_isolation('claim');
    if name is null or length(name) not between 1 and 200 then
        perform refuse(format('claim: name must be a name of 1 to 200 characters, got %s',
                              coalesce(quote_literal(left(name, 200)), 'null')));
    end if;
    update setting set claimed_by = name where claimed_by is null;
    return (select claimed_by from setting);
end $$;
comment on function recrawl.claim is
'Claims the crawl for one program, so that crawlers of different kinds do not share it. Returns the owner of the crawl.

* name: the name of the caller, 1 to 200 characters, for example the name of a Scrapy spider.

The first caller becomes the owner. A later call changes nothing: if it returns another name, use another database.
set_setting(''claimed_by'', ''none'') removes the owner.';
grant execute on function recrawl.claim to recrawl_crawler;
