"""What the network and its bridge tell us."""
