-- The names of hosts: how they are spelled, and the host that a name belongs to.

-- The spelling of a host in host_name; null if the text is not a host name or an address without port.
create or replace function plain_host(host text) returns text
language plpgsql immutable parallel safe as $$
declare
    parsed record;
begin
    select * into parsed
    from parse_url('http://' || case when host ~ ':.*:' and host not like '[%' then '[' || host || ']'
                                     else host end || '/');
    return case when host !~ '[/?#@]' and (host ~ '[]]$' or parsed.host like '[%' or host not like '%:%')
                then parsed.host end;
end $$;

-- The same as plain_host, but raises an error if the text is not a host name. verb: the function in the message.
create or replace function host_name_of(verb text, host text) returns text
language plpgsql stable as $$
declare
    name constant text := plain_host(host);
begin
    if name is null then
        perform refuse(format('%s: host must be a host name or address without port, got %s',
                              verb, coalesce(quote_literal(host), 'null')));
    end if;
    return name;
end $$;

-- The id of a host; null if it is unknown.
create or replace function host_id_of(verb text, host text) returns bigint
language plpgsql stable as $$
-- plans: lookups
begin
    return (select n.host_id from host_name n where n.name = host_name_of(verb, host));
end $$;

-- The name that a host was made with. Other names may share the host.
create or replace function name_of_host(host_id bigint) returns text
language plpgsql stable as $$
-- plans: lookups
begin
    return (select h.name from host h where h.host_id = name_of_host.host_id);
end $$;
