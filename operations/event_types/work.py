"""Events of work that took a while: reports, change sets, approvals."""
