"""A PostgreSQL database with a trap object in front of each name that PostgreSQL defines itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from servers import running

from pinchpoint_infra.embedded.tiers.sql import Sql


class Counting(Sql):
    """The embedded farm's SQL server, with access to its statement statistics for the superuser."""

    @property
    def admin(self) -> str:
        """The superuser's URL of the load test's database."""
        return self._url("admin", self._admin, "loadtest")


_TRAP = """
DO $do$
DECLARE one record; body text;
BEGIN
    FOR one IN SELECT p.proname AS name, oidvectortypes(p.proargtypes) AS arguments,
            format_type(p.prorettype, NULL) AS result, p.proretset AS rows
        FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
    LOOP
        BEGIN
            body := format('BEGIN RAISE EXCEPTION %L; END', 'sprung: function ' || one.name);
            EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s%s LANGUAGE plpgsql AS %L', one.name,
                one.arguments, CASE WHEN one.rows THEN 'SETOF ' ELSE '' END, one.result, body);
        EXCEPTION WHEN OTHERS THEN NULL;  -- of pseudo-types: no function of that kind can be made
        END;
    END LOOP;
    FOR one IN SELECT o.oprname AS name, format_type(o.oprleft, NULL) AS l,
            format_type(o.oprright, NULL) AS r, format_type(o.oprresult, NULL) AS result, o.oid AS number
        FROM pg_operator o WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprleft <> 0
    LOOP
        BEGIN
            body := format('BEGIN RAISE EXCEPTION %L; END', 'sprung: operator ' || one.name);
            EXECUTE format('CREATE FUNCTION public.trap_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L',
                one.number, one.l, one.r, one.result, body);
            EXECUTE format(
                'CREATE OPERATOR public.%s (FUNCTION = public.trap_%s, LEFTARG = %s, RIGHTARG = %s)',
                one.name, one.number, one.l, one.r);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
    FOR one IN SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
    LOOP
        EXECUTE format('CREATE VIEW public.%I AS SELECT 1 / 0 AS sprung', one.name);
    END LOOP;
END $do$
"""


@contextmanager
def planted() -> Iterator[str]:
    """Yield a superuser's URL of a database whose search path begins with ``public``, full of traps.

    ``public`` has a copy of each function, operator, table and view of PostgreSQL that can be created again;
    each copy raises an error. The extension pg_stat_statements is in the schema ``statistics``.
    """
    with running(Counting) as tier:
        assert isinstance(tier, Counting)
        with psycopg.connect(tier.admin, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA statistics")
            connection.execute("CREATE EXTENSION pg_stat_statements SCHEMA statistics")
            connection.execute("SET search_path = pg_catalog")
            connection.execute(_TRAP.encode())
            connection.execute("CREATE VIEW public.pg_stat_statements AS SELECT 1 / 0 AS sprung")
            connection.execute("ALTER DATABASE loadtest SET search_path = public, pg_catalog")
        with (
            psycopg.connect(tier.admin, autocommit=True) as connection,
            pytest.raises(psycopg.errors.RaiseException, match="sprung: function set_config"),
        ):
            connection.execute("SELECT set_config('application_name', 'x', false)")
        yield tier.admin
