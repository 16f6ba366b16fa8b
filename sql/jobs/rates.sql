-- The job rates: the columns of pages that it reads, and the priors that it writes for each host.

create or replace view page_evidence as
select p.host_id, p.seen_changes, p.seen_days
from page p
where p.seen_days > 0;
comment on view page_evidence is 'The evidence that the job rates learns the priors from.';

-- Stores the priors of change rates, one for each of the given hosts. Host 0 has the prior of the hosts that have
-- no prior of their own.
create or replace function put_priors(
    token bigint, alive_for interval, host_ids bigint[], changes float8[], days float8[]
) returns void
language plpgsql volatile security definer as $$
-- plans: whole; writes host_terms; locks job, host_terms
begin
    perform keep_job(token, alive_for);
    lock table host_terms in share row exclusive mode;     -- see put_prices()
    merge into host_terms h
    using unnest(host_ids, changes, days) as f (host_id, prior_changes, prior_days) on f.host_id = h.host_id
    when matched and (h.prior_changes, h.prior_days) is distinct from (f.prior_changes, f.prior_days) then
        update set prior_changes = f.prior_changes, prior_days = f.prior_days
    when not matched then
        insert (host_id, prior_changes, prior_days) values (f.host_id, f.prior_changes, f.prior_days);
end $$;

grant execute on function put_priors to recrawl_worker;
grant select on page_evidence to recrawl_worker;
