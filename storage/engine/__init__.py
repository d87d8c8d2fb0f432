"""The engine: stores, connections, statements, migrations, partitions and jobs. It imports no aggregate."""
