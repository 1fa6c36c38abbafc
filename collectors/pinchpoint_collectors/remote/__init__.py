"""What collectors of other machines share: the way there (ssh), and the distance between two clocks."""
