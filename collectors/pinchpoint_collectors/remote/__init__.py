"""What collectors of remote machines share: ssh, and the offset between two clocks."""
