"""The console behind /console: screens for people who run the business and write no code."""
