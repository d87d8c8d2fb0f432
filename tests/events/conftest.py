"""A mail stage over a new SQLite file."""

from tests.events.mail_stage import open_mail_stage
from tests.stage import opened

mails = opened(open_mail_stage)
