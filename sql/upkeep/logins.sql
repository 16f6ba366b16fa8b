-- Finds logins that have many leased pages, for the setting max_leased_per_login. Each call of next_pages would be slow
-- if it counted all leased pages. So ticks note in full_logins the logins that have nine tenths of the limit.
-- next_pages counts the pages of these logins only.
--
-- A count reads all leases that have not ended, so ticks count only when a login can have reached nine tenths. Example:
-- the limit is 1,000, and at the last count the login with the most pages had 700. No login can have 900 before 200
-- more pages were handed out, to all logins together.

-- The number of pages that a login has leased at the time t.
create or replace function leased_by(login text, t timestamptz) returns bigint
language plpgsql stable as $$
-- plans: whole
begin
    return (
        select coalesce(sum(l.unreported), 0)
        from lease l where l.login = leased_by.login and l.lease_until > t);
end $$;

-- Notes the logins that have nine tenths of max_leased_per_login, if a login can have reached that since the last
-- count.
create or replace function watch_logins(t timestamptz) returns void
language plpgsql volatile as $$
-- plans: whole; writes setting; locks setting (passing over a locked one)
declare
    most       constant int := (select max_leased_per_login from setting);
    nearly     constant int := ceil(0.9 * most);
    handed_out bigint;
    recount    bigint;
    lacking    bigint;
    found_full text[];
begin
    select h.last_value, r.last_value into handed_out, recount from handed_out_count h, leased_recount r;
    -- If the recount is more than `most` ahead, it was set under a higher limit or for another count: count now.
    if most is null or recount between handed_out + 1 and handed_out + most then
        return;
    end if;
    select array_agg(l.login order by l.login) filter (where l.pages >= nearly),
           min(nearly - l.pages) filter (where l.pages < nearly)
    into found_full, lacking
    from (select login, sum(unreported) as pages from lease where lease_until > t group by login) l;
    perform from setting where full_logins is distinct from found_full for update skip locked;
    if found then
        update setting set full_logins = found_full;
    end if;
    -- If another session has locked the setting, the next tick counts again.
    if (select full_logins from setting) is not distinct from found_full then
        perform setval('leased_recount', handed_out + greatest(coalesce(lacking, nearly), most / 100, 1));
    end if;
end $$;
