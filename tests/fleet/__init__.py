"""The read model of fleets: it is what the network is, whatever happened, and tells nobody of what is not theirs."""
