"""Personas: how the lines of each account live, and who uses them. All names are invented."""

from typing import Literal, NamedTuple
from unicodedata import normalize

from simulators.network.entities import Persona
from simulators.network.seed.geography import country_codes
from simulators.network.seed.resellers import DEMO_ACCOUNT
from simulators.seeded_random import Random

PersonaKind = Literal["traveller", "commuter", "heavy", "tracker", "dormant", "stock"]


class UsageProfile(NamedTuple):
    """A kind of life, per day; `bytes` is one session's."""

    active_share: float
    sessions: float
    bytes: int
    travel_share: float
    calls: float
    messages: float


USAGE_PROFILES: dict[PersonaKind, UsageProfile] = {
    "traveller": UsageProfile(0.45, 2.2, 22_000_000, 0.35, 0.15, 0.2),
    "commuter": UsageProfile(0.7, 2.0, 18_000_000, 0.06, 0.3, 0.3),
    "heavy": UsageProfile(0.85, 3.0, 75_000_000, 0.15, 0.4, 0.4),
    "tracker": UsageProfile(0.5, 2.0, 160_000, 0.12, 0.0, 0.02),
    "dormant": UsageProfile(0.03, 1.0, 4_000_000, 0.05, 0.02, 0.02),
    "stock": UsageProfile(0.0, 0.0, 0, 0.0, 0.0, 0.0),
}

PERSONA_WEIGHTS: dict[int, dict[PersonaKind, float]] = {
    DEMO_ACCOUNT: {"traveller": 50, "commuter": 25, "heavy": 10, "dormant": 15},
    8102: {"tracker": 95, "dormant": 5},
    8103: {"traveller": 60, "commuter": 20, "heavy": 20},
    8104: {"traveller": 70, "dormant": 30},
    8201: {"traveller": 45, "commuter": 45, "dormant": 10},
    8202: {"traveller": 60, "heavy": 10, "dormant": 30},
}

FJORD_HOMES = {"no": 46, "se": 14, "dk": 10, "fi": 8, "de": 8, "gb": 6, "pl": 4, "fr": 2, "es": 2}

ALPINE_HOMES = {"ch": 50, "at": 20, "de": 15, "it": 8, "fr": 7}

NEAR_COUNTRIES = country_codes("es it fr de gb gr pt nl at hr dk se pl ch tr ie be cz fi is")

FAR_COUNTRIES = country_codes("us th jp ae sg ca br au za mx id hk kr eg in ke nz vn do ma")


def draw_weighted(chance: Random, weights: dict[str, float]) -> str:
    """One of the words."""
    return chance.choices(list(weights), list(weights.values()))[0]


def draw_persona(chance: Random, account_id: int) -> Persona:
    """The life of one line."""
    flavour = PERSONA_WEIGHTS[account_id]
    kind = chance.choices(list(flavour), list(flavour.values()))[0]
    home = draw_weighted(chance, dict(FJORD_HOMES if account_id < 8200 else ALPINE_HOMES))
    habit = USAGE_PROFILES[kind]
    volume = int(habit.bytes * chance.uniform(0.6, 1.7))
    return Persona(kind, home, draw_travel_countries(chance, kind, home), habit.active_share, habit.sessions, volume, *habit[3:])


def draw_travel_countries(chance: Random, kind: PersonaKind, home: str) -> tuple[str, ...]:
    """Where a line goes: machines stay near, travellers go far now and then."""
    near = chance.sample([iso2 for iso2 in NEAR_COUNTRIES if iso2 != home], 3 if kind == "tracker" else chance.randint(1, 3))
    far = chance.sample(FAR_COUNTRIES, chance.randint(1, 2)) if kind in ("traveller", "heavy") and chance.random() < 0.3 else []
    return (*near, *far)


def stock_persona(home: str) -> Persona:
    """A SIM in a drawer."""
    return Persona("stock", home, (), *USAGE_PROFILES["stock"])


PEOPLE_BY_COUNTRY = {
    "no": "Ingrid Lars Kari Ola Silje Henrik Nora Sindre | Hansen Berg Lund Solheim Haugen Bakken Dahl Strand",
    "se": "Anna Erik Linnea Oskar Maja Viktor Elsa Axel | Lindqvist Nyström Ekström Sandberg Holm Wallin Åberg Forsberg",
    "dk": "Mette Søren Freja Mads Ida Rasmus Signe Jonas | Nielsen Kjær Holst Vestergaard Bruun Damgaard Krogh Skov",
    "fi": "Aino Juhani Helmi Mikko Sanna Antti Venla Olli | Virtanen Korhonen Mäkelä Nieminen Laine Heikkinen Salo Rantanen",
    "de": "Lena Jonas Katharina Felix Miriam Tobias Greta Moritz | Schäfer Vogel Brandt Köhler Lorenz Winkler Seidel Haas",
    "gb": "Olivia Harry Priya Callum Grace Imran Sophie Rhys | Whitaker Patel Hughes Campbell Osborne Ahmed Fletcher Doyle",
    "pl": "Zofia Jakub Maja Szymon Hanna Piotr Ola Marek | Nowak Zieliński Wójcik Kamińska Lis Mazur Wrona Sikora",
    "fr": "Camille Lucas Inès Hugo Manon Théo Aïcha Rémi | Lefèvre Moreau Girard Benali Rousseau Chevalier Faure Marchand",
    "es": "Lucía Javier Carmen Diego Elena Pablo Nuria Iker | Navarro Ortega Castillo Iglesias Prieto Serrano Vidal Etxeberria",
    "it": "Giulia Marco Chiara Luca Alessia Matteo Elisa Davide | Ricci Marino Conti Gallo Ferrara Caruso Villa Pellegrini",
    "ch": "Seraina Beat Corinne Reto Noemi Urs Livia Gian | Zürcher Brunner Keller Gerber Frei Caduff Baumann Wyss",
    "at": "Theresa Florian Magdalena Lukas Sophie Clemens Eva Georg | Huber Steiner Gruber Pichler Moser Egger Leitner Auer",
}

FOREIGN_PEOPLE = "Mei Kenji Fatima Omar Chidi Amara Thiago Ananya | Tanaka Chen Hassan Okafor Mensah Silva Rojas Sharma Nguyen Kim"

FIRMS = (
    "Nordlys Shipping",
    "Halvorsen & Co",
    "Bergland Consulting",
    "Aurora Films",
    "Polar Seafood",
    "Vest Energi",
    "Kvarts Robotics",
    "Fjellheim Travel",
)

VEHICLES = ("Truck", "Trailer", "Van", "Crane", "Reefer", "Excavator", "Bus", "Boat", "Container", "Meter")

ASCII_LETTERS = str.maketrans({"ø": "o", "æ": "ae", "ł": "l", "ß": "ss"})


def draw_person(chance: Random, home: str) -> str:
    """A name of the home country, or now and then of another part of the world."""
    first, last = (PEOPLE_BY_COUNTRY[home] if home in PEOPLE_BY_COUNTRY and chance.random() < 0.85 else FOREIGN_PEOPLE).split("|")
    return f"{chance.choice(first.split())} {chance.choice(last.split())}"


def mail_address(name: str, host: str) -> str:
    """The address a person of this name might have."""
    plain = normalize("NFKD", name.lower().translate(ASCII_LETTERS)).encode("ascii", "ignore").decode()
    return f"{'.'.join(plain.split())}@{host}"


def draw_vehicle(chance: Random, number: int) -> str:
    """A machine with a line in it."""
    return f"{chance.choice(VEHICLES)} {number % 1000:03d}"


def mail_host(firm: str) -> str:
    """A firm's mail host."""
    return f"{''.join(letter for letter in firm.lower() if letter.isalpha())}.example"
