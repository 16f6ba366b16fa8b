-- The identity of URLs: one canonical spelling for all spellings of a URL, and 128 bits of its hash as the key. No
-- other code decides which URLs are the same page.

-- Each byte of a text as % and two hexadecimal digits.
create or replace function percent_encoded(piece text) returns text
language sql immutable strict parallel safe as $$
    select regexp_replace(upper(encode(convert_to(piece, 'UTF8'), 'hex')), '(..)', E'%\\1', 'g')
$$;

-- A path or query with one spelling of its percent-encoding (RFC 3986, section 6.2.2). Letters, digits and -._~ are
-- never encoded. Reserved characters stay as given: / and %2F differ. Exceptions: [ and ] may not stand in a path or
-- query. They are encoded like all other characters, with capital digits.
create or replace function normalise_percent(part text) returns text
language sql immutable strict parallel safe as $$
    select coalesce(string_agg(
        case
            when piece !~ '^%..$' and piece ~ '^[A-Za-z0-9_.~!$&''()*+,;=:@/?-]+$' then piece
            when piece !~ '^%..$' then percent_encoded(piece)
            when upper(piece) ~ '^%(2D|2E|3[0-9]|4[1-9A-F]|5[0-9A]|5F|6[1-9A-F]|7[0-9A]|7E)$'
                then convert_from(decode(substr(piece, 2), 'hex'), 'UTF8')
            else upper(piece)
        end, '' order by place), '')
    from regexp_matches(part, '%[0-9A-Fa-f]{2}|[A-Za-z0-9_.~!$&''()*+,;=:@/?-]+|.', 'g') with ordinality
             as m (match, place),
         lateral (select match[1]) as p (piece)
$$;

-- A path without its . and .. segments (RFC 3986, section 5.2.4).
create or replace function resolve_dots(path text) returns text
language plpgsql immutable strict parallel safe as $$
declare
    segments text[] := string_to_array(substr(path, 2), '/');
    kept     text[] := '{}';
    segment  text;
begin
    foreach segment in array segments loop
        if segment = '..' then
            kept := kept[:cardinality(kept) - 1];
        elsif segment <> '.' then
            kept := array_append(kept, segment);
        end if;
    end loop;
    if segments[cardinality(segments)] in ('.', '..') then
        kept := array_append(kept, '');
    end if;
    return '/' || array_to_string(kept, '/');
end $$;

-- The one spelling of an IP address that is used as a host; null if it is no IP address. An IP address has many
-- spellings, and every browser accepts them: 127.0.0.1 is also 127.1, 0x7f.0.0.1 and 2130706433.
create or replace function address(host text) returns text
language plpgsql immutable strict parallel safe as $$
declare
    parts   text[] := string_to_array(host, '.');
    part    text;
    base    int;
    number  numeric;
    whole   numeric := 0;
begin
    if host like '[%' then
        return '[' || pg_catalog.host(btrim(host, '[]')::inet) || ']';
    end if;
    for i in 1 .. cardinality(parts) loop
        base := case when parts[i] like '0x%' then 16 when parts[i] like '0_%' then 8 else 10 end;
        part := case base when 16 then substr(parts[i], 3) else parts[i] end;
        if part !~ (case base when 16 then '^[0-9a-f]{0,20}$' when 8 then '^[0-7]{1,20}$' else '^[0-9]{1,20}$' end) then
            return null;
        end if;
        number := 0;
        for j in 1 .. length(part) loop
            number := number * base + strpos('0123456789abcdef', substr(part, j, 1)) - 1;
        end loop;
        -- The last part fills all bytes that the parts before it leave.
        if cardinality(parts) > 4 or number >= (case when i < cardinality(parts) then 256 else 256 ^ (5 - i) end) then
            return null;
        end if;
        whole := whole + number * case when i < cardinality(parts) then 256 ^ (4 - i) else 1 end;
    end loop;
    return pg_catalog.host('0.0.0.0'::inet + whole::bigint);
exception when data_exception then
    return null;
end $$;

-- The reason why a URL is invalid, apart from its host and port; null = it is valid so far.
create or replace function problem_with_url(url text) returns text
language sql stable parallel safe      -- like format(); otherwise it would not be inlined
return case
    when url is null or url = '' then 'the URL is empty'
    when length(url) > 2048 then format('the URL is longer than 2048 characters (%s)', length(url))
    when url ~ '[[:cntrl:]]' then 'the URL contains a control character'
    when url !~* '^https?://' then 'the URL must begin with http:// or https://'
    when substring(url from '^[^:]*://([^/?]*)') like '%@%' then 'the URL carries credentials' end;

-- The reason why a host (in lower case) or a port (with its colon) is invalid; null = both are valid.
create or replace function problem_with_host(host text, port text) returns text
language sql stable parallel safe      -- see problem_with_url()
return case
    when host ~ '[^ -~]' then format('the host %s is not ASCII: give it in its xn-- form', host)
    when host !~ '^([a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|[[][0-9a-f:.]*:[0-9a-f:.]*[]])$' or host ~ '[.][.]|[.]-|-[.]'
         or length(host) > 253 or (length(host) > 63 and host ~ '[^.]{64}') then
        format('the host "%s" is not a valid name', left(host, 100))
    when port !~ '^(:0*[0-9]{0,5})?$' or port ~ '^:0+$'
         or coalesce(nullif(substr(port, 2), ''), '1')::bigint > 65535 then
        format('the port "%s" is not valid', left(substr(port, 2), 20)) end;

-- Splits a URL. url: the URL to fetch, as given, but trimmed, without fragment and in ASCII. canonical: its one
-- spelling. problem: why the URL is invalid; then canonical and host are null.
create or replace function parse_url(raw text, out url text, out canonical text, out host text, out problem text)
language plpgsql immutable parallel safe as $$
declare
    scheme text;
    name   text;                       -- the host as given
    port   text;                       -- with its colon
    path   text;
begin
    url := btrim(split_part(btrim(raw, E' \t\r\n\f\v'), '#', 1), E' \t\r\n\f\v');
    problem := problem_with_url(url);
    if problem is not null then
        return;
    end if;

    scheme := lower(split_part(url, ':', 1));
    name := substring(url from '^[^:]*://([[][^]/?]*[]]|[^:/?]*)');
    port := substr(substring(url from '^[^:]*://([^/?]*)'), length(name) + 1);
    host := lower(rtrim(name, '.') collate "C");
    problem := problem_with_host(host, port);
    if problem is null and (host like '[%' or substring(host from '[^.]*$') ~ '^([0-9]+|0x[0-9a-f]*)$') then
        if address(host) is null then
            problem := format('the host "%s" is not a valid address', left(host, 100));
        end if;
        host := address(host);
    end if;
    if problem is not null then
        host := null;
        return;
    end if;

    port := coalesce(':' || nullif(ltrim(substr(port, 2), '0'), ''), '');
    if (scheme, port) in (('http', ':80'), ('https', ':443')) then
        port := '';
    end if;
    path := normalise_percent(substring(url from '^[^:]*://[^/?]*([^?]*)'));
    canonical := scheme || '://' || host || port
                 || case when path = '' then '/' when path like '%/.%' then resolve_dots(path) else path end
                 || coalesce('?' || normalise_percent(substring(url from '[?](.*)$')), '');
    -- A request line must not contain spaces and characters outside ASCII, and not every HTTP client encodes them. So
    -- they are percent-encoded in the URL to fetch too.
    if url ~ '[^!-~]' then
        url := (
            select string_agg(case when m.piece[1] ~ '^[!-~]' then m.piece[1] else percent_encoded(m.piece[1]) end, ''
                              order by m.place)
            from regexp_matches(url, '[!-~]+|.', 'g') with ordinality as m (piece, place));
    end if;
    if greatest(length(url), length(canonical)) > 2048 then
        canonical := null;
        host := null;
        problem := 'the URL is longer than 2048 characters once encoded';
    end if;
end $$;

-- True only if a URL already is its own canonical spelling. Recognises most canonical URLs with one regular expression.
-- Most URLs are canonical. parse_url() takes 21 µs, which is 5 to 9 times as long as this function (PostgreSQL 18 and
-- 15). If this function does not recognise a canonical URL, the URL is parsed, with the same result.
create or replace function is_canonical(raw text) returns boolean
language sql immutable parallel safe
return raw ~ ('^https?://([a-z0-9][a-z0-9-]*[.])+[a-z][a-z0-9-]*'
              '/[A-Za-z0-9_.~!$&''()*+,;=:@/-]*([?][A-Za-z0-9_.~!$&''()*+,;=:@/?-]*)?$')
       and strpos(raw, '/.') = 0 and strpos(raw, '-.') = 0 and strpos(raw, '-/') = 0
       and length(split_part(raw, '/', 3)) <= 63 and length(raw) <= 2048;

-- The canonical spelling of a URL; null for an invalid URL.
create or replace function canonical_of(url text) returns text
language sql immutable parallel safe
return case when is_canonical(url) then url else (parse_url(url)).canonical end;

-- The identity of a page: the first 128 bits of the sha256 of its canonical URL (which is ASCII without backslashes).
create or replace function url_key(canonical text) returns uuid
language sql immutable parallel safe
return encode(substring(sha256(canonical::bytea) for 16), 'hex')::uuid;
