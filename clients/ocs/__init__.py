"""The upstream online charging system (OCS): its calls and its answers, typed."""
