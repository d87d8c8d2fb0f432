"""How a change of many lines becomes rows: what is asked, what each line is now, and the calls that change it."""
