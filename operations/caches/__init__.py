"""What a process remembers of the charging system, for all calls. These modules import no dependencies of calls: those name them."""
