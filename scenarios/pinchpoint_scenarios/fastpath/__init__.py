"""Connections that cost the load generator about the same CPU time as those of a C program.

The method is the same for all kinds of servers: a library connects and logs in. After that, an operation
consists of bytes sent, one wait for the descriptor, and a C parser, without object layer, new watcher or
timer. Failures are raised as the exceptions of the library, so that one function names them. The library's
own driver is the reference in tests.
"""
