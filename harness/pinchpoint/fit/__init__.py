"""From what a production server says of itself to a plan that loads a farm alike (``init --from``)."""
