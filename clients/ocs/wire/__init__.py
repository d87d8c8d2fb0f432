"""The answers of the charging system, as it spells them. Every member is optional; members it adds are kept."""
