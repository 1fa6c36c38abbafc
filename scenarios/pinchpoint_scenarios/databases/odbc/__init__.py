"""SQL servers behind ODBC drivers: finding drivers, connecting, naming failures (pyodbc).

``address`` and ``drivers`` need no installed package. The other modules may import pyodbc, which needs the
system's libodbc: they are imported late, so that ``sql_mix.server`` can report what is missing.
"""
