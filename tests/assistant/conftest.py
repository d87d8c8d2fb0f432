"""A staged operator with a fleet and a model."""

from tests.assistant.stage import open_assistant_stage
from tests.stage import opened

stage = opened(open_assistant_stage)
