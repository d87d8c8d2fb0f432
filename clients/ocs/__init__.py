"""The upstream online charging system (OCS): its wire, typed."""
