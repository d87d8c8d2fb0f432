"""Events of the organisation itself, which admins alone see."""
