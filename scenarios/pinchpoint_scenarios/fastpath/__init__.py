"""Connections that cost the load generator about as little as a C program.

All kinds of servers use the same method: a library connects and logs in, as for the plain driver. After that
an operation is bytes sent, one wait for the descriptor, and a C parser; no object layer, no new watcher, no
timer. Failures are raised as the plain driver's exceptions, so that one function names them, and the plain
driver stays as the reference for tests.
"""
