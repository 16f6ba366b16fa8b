-- Replaces the list of the hosts whose gap costs most. The job allocate writes it.
create or replace function put_capped_hosts(
    token bigint, alive_for interval, host_ids bigint[], pages bigint[], wanted float8[], frequencies float8[],
    gains float8[]
) returns void
language plpgsql volatile security definer as $$
-- plans: lookups; writes capped_hosts; locks job, capped_hosts
declare
    t timestamptz;
begin
    t := keep_job(token, alive_for);
    delete from capped_hosts;
    insert into capped_hosts (host_id, pages, gap, slot_every, wanted, frequency, half_gap_gain, as_of)
    select n.host_id, n.pages, gap_of(h, s), slot_every(h, s),
           nullif(n.wanted, 'infinity'),                   -- the job passes infinity: no limit; stored as null
           n.frequency, n.gain, t
    from unnest(host_ids, pages, wanted, frequencies, gains) as n (host_id, pages, wanted, frequency, gain)
    join host h on h.host_id = n.host_id
    cross join setting s;
end $$;
grant execute on function put_capped_hosts to recrawl_worker;
