"""What is kept of people, organisations, and how they prove who they are."""
