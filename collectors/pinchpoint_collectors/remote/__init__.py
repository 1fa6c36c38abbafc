"""The common part of remote collectors: ssh, and the offset between two clocks."""
