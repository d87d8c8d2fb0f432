"""The directory that keeps all state of the embedded default."""

from transports.settings import BadSettings, Settings


def make_data_directory(settings: Settings) -> None:
    """Make it where it is needed and missing."""
    if not settings.embedded:
        return
    try:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadSettings(
            f"SERVICE_DATA: {settings.data} cannot be made ({error.strerror}); name a directory this user may write"
        ) from None
