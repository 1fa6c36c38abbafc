"""Provides access to SQL servers by ODBC drivers (pyodbc): finds drivers, connects, names failures.

``address`` and ``drivers`` need no installed package. The other modules import pyodbc, which needs the
system's libodbc. They are imported late, so that ``sql_mix.server`` can report what is missing.
"""
