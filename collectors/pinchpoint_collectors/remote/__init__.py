"""Common functions of remote collectors: ssh, and the offset between two clocks."""
