-- Stores the prices and other terms of hosts, and the record of the run, for the job allocate.

-- Stores an allocation: the terms of each host that took part, and the common terms as host 0.
--
-- All hosts are written in one transaction. Until it commits, and if it fails, the last result stays in force. The job
-- rates writes the same rows, and the two jobs may lock them in different orders, which would be a deadlock. So each
-- job locks the table, and one waits for the other. Readers do not wait.
--
-- NaN is stored as null. In the row of a host, null means that the term of host 0 holds (for ties: only if the price of
-- host 0 holds too). In the row of host 0 it means that there is no such term. Rows that do not change are not written.
-- ON CONFLICT would lock every row, and a lock is a write. The frequency of a host is only shown, so
-- a change of less than a thousandth alone is not written.
create or replace function put_prices(
    token bigint, alive_for interval, run jsonb, host_ids bigint[], prices float8[], ties float8[],
    min_frequencies float8[], capped boolean[], frequencies float8[], pins_kept float8[]
) returns void
language plpgsql volatile security definer as $$
-- plans: whole; writes host_terms, allocation; locks job, host_terms
begin
    perform keep_job(token, alive_for);
    lock table host_terms in share row exclusive mode;
    merge into host_terms h
    using (select n.host_id, nullif(n.price, 'NaN') as price, nullif(n.tied, 'NaN') as ties,
                  nullif(n.min_frequency, 'NaN') as min_frequency, n.is_capped, nullif(n.frequency, 'NaN') as frequency,
                  nullif(n.pins_kept, 'NaN') as pins_kept
           from unnest(host_ids, prices, put_prices.ties, min_frequencies, capped, frequencies, put_prices.pins_kept)
                as n (host_id, price, tied, min_frequency, is_capped, frequency, pins_kept)) f on f.host_id = h.host_id
    when matched and ((h.price, h.ties, h.min_frequency, h.is_capped, h.pins_kept)
                      is distinct from (f.price, f.ties, f.min_frequency, f.is_capped, f.pins_kept)
                      or (abs(h.frequency - f.frequency) <= 0.001 * h.frequency) is not true) then
        update set price = f.price, ties = f.ties, min_frequency = f.min_frequency, is_capped = f.is_capped,
                   frequency = f.frequency, pins_kept = f.pins_kept
    when not matched then
        insert (host_id, price, ties, min_frequency, is_capped, frequency, pins_kept)
        values (f.host_id, f.price, f.ties, f.min_frequency, f.is_capped, f.frequency, f.pins_kept);
    -- Hosts that no longer take part get the same row as hosts that never did. With NOT IN, which is not hashed if the
    -- list needs more than twice work_mem, this compared each of 600,000 hosts with all others and did not end.
    update host_terms h
    set price = null, ties = null, min_frequency = null, is_capped = null, frequency = null, pins_kept = null
    where h.is_capped is not null
          and not exists (select from unnest(host_ids) as n (host_id) where n.host_id = h.host_id);
    update host_terms set objective = run ->> 'priced_by'
    where host_id = 0 and objective is distinct from run ->> 'priced_by';
    insert into allocation
    select (jsonb_populate_record(null::allocation, run || jsonb_build_object(
        'token', put_prices.token, 'started_at', (select started_at from job j where j.token = put_prices.token),
        'handed_out', (select last_value from handed_out_count)))).*;
end $$;

grant execute on function put_prices to recrawl_worker;
