"""How the simulated network looks at its start: reproducible from a seed."""
