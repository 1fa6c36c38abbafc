"""Reads Windows' performance counters: raw over WinRM or OpenSSH, and formatted by PDH on this machine."""
