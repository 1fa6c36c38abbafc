"""SQL servers by their ODBC drivers: found, connected to, named when they fail (pyodbc).

``address`` and ``drivers`` need nothing installed. All else may import pyodbc, which needs the system's
libodbc: whoever uses it imports it late, by ``sql_mix.server``'s way of saying what is missing.
"""
