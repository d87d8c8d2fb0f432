"""A log of events over SQLite, and over each database; and a stage for mails."""

from tests.events.log_office import open_log_office
from tests.events.mail_stage import open_mail_stage
from tests.stage import opened, opened_on_both

office = opened(open_log_office, faultless=True)
on_both = opened_on_both(open_log_office, faultless=True)
mails = opened(open_mail_stage)
