"""What a cloud platform itself measured: the share of its limits that disks and machines used."""
