"""How the fields of an input model may be written: the name that is shown, and the others that are taken."""

from functools import lru_cache

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo


def shown(name: str, info: FieldInfo) -> str:
    """The one name of a field that documentation and refusals use."""
    return info.alias or name


@lru_cache(maxsize=1024)
def spellings(model: type[BaseModel]) -> dict[str, str]:
    """Every name that is taken, with the field's own name in the model."""
    found: dict[str, str] = {}
    for name, info in model.model_fields.items():
        words = [shown(name, info)]
        if isinstance(info.validation_alias, AliasChoices):
            words += [str(choice) for choice in info.validation_alias.choices if isinstance(choice, str)]
        if model.model_config.get("validate_by_name"):
            words.append(name)
        found.update(dict.fromkeys(words, name))
    return found
