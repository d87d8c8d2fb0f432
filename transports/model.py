"""The way to the language model in the settings, if there is one."""

from clients.model.client import ModelClient
from clients.model.settings import ModelSettings
from clients.outside_system import OutsideSystem
from registry.clock import Clock
from transports.settings import Settings


def open_model(settings: Settings, clock: Clock) -> ModelClient | None:
    """Nothing is connected before the first call."""
    if not settings.model_url:
        return None
    system = OutsideSystem("model", clock, most_waiting=settings.most_waiting)
    reached = ModelSettings(settings.model_url, settings.model_name, settings.model_key.get_secret_value(), settings.ca_file)
    return ModelClient(reached, clock, system)
