"""The work behind change sets: reading their lines, and sending their rows."""
