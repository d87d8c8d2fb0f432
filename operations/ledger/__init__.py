"""What is sent to a provider once and never twice: eSIMs that are drawn, money that is paid out or given back."""
