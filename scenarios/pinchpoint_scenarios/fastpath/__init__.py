"""Connections that cost the load generator about as little as a C program.

The recipe is the same for each kind of server: a library connects and logs in, as it does for the plain
driver. From then on an operation is bytes sent, one wait for the descriptor, and a C parser; no object layer,
no new watcher, no timer. Failures come out as the plain driver's exceptions, so that they are named by one
piece of code, and the plain driver stays as the reference that tests compare with.
"""
