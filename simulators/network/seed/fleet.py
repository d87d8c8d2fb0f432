"""The fleet: the lines of every account with their SIMs and numbers, before the history, and what each of them will do in it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple
from unicodedata import normalize

from simulators.network.entities import (
    DAY_SECONDS,
    MICRO_EURO,
    ImsiRow,
    Line,
    LineStatus,
    NumberRow,
    Persona,
    ProviderRow,
    ResellerAccount,
    Sim,
    StatusRow,
)
from simulators.network.seed.geography import country_codes
from simulators.network.seed.resellers import DEMO_ACCOUNT, FJORD, LUMEN, MAIN_PROFILES, MERIDIAN, RESELLER_SPONSORS, SPX, line_counts
from simulators.network.world import World
from simulators.seeded_random import Random, seeded_random

PersonaKind = Literal["traveller", "commuter", "heavy", "tracker", "dormant", "stock"]
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
MAIN_SPONSORS = {8101: SPX, 8102: MERIDIAN, 8103: SPX, 8104: SPX, 8201: SPX, 8202: LUMEN}
"""Whose SIMs an account stocks. Choice: free SIMs are of this sponsor, so that its templates can be issued from stock."""
OTHER_SPONSORS = {8102: SPX, 8201: LUMEN}
OLD_SERIALS = 500_000_000
"""Serial numbers of SIMs that were replaced."""
PREPAID_SHARE = {8101: 0.3, 8201: 0.5}
"""Lines that pay use outside of packages from a balance of their own."""
STOCK_SHARE = 0.1
NEWCOMER_SHARE = 0.4
END_STATUS_SHARES: tuple[tuple[LineStatus, float], ...] = (("SUSPENDED", 0.025), ("DISCONNECTED", 0.02), ("END_OF_LIFE", 0.015))
PAUSE_SHARE = 0.03
ACTIVATION_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
ICCID_ISSUER = "8988303"  # spec examples use this range
LINE_ID_BASE = 900_000
"""Line ids begin above it: the serial number of a SIM is the rest."""
PROFILE_TYPE = "P1"
SMDP_HOSTS = {SPX: "smdp.spx-roaming.test", MERIDIAN: "rsp.meridian-m2m.test", LUMEN: "smdp.lumen-travel.test"}
ISSUE_STEPS = (("Released", 0), ("Downloaded", 340), ("Installed", 395), ("Enable", 460))
"""What follows an issue, and after how many seconds."""


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


def _draw_weighted(chance: Random, weights: dict[str, float]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


def _draw_persona(chance: Random, account_id: int) -> Persona:
    flavour = PERSONA_WEIGHTS[account_id]
    kind = chance.choices(list(flavour), list(flavour.values()))[0]
    home = _draw_weighted(chance, dict(FJORD_HOMES if account_id < 8200 else ALPINE_HOMES))
    habit = USAGE_PROFILES[kind]
    volume = int(habit.bytes * chance.uniform(0.6, 1.7))
    return Persona(kind, home, draw_travel_countries(chance, kind, home), habit.active_share, habit.sessions, volume, *habit[3:])


def draw_travel_countries(chance: Random, kind: PersonaKind, home: str) -> tuple[str, ...]:
    """Where a line goes: machines stay near, travellers go far now and then."""
    near = chance.sample([iso2 for iso2 in NEAR_COUNTRIES if iso2 != home], 3 if kind == "tracker" else chance.randint(1, 3))
    far = chance.sample(FAR_COUNTRIES, chance.randint(1, 2)) if kind in ("traveller", "heavy") and chance.random() < 0.3 else []
    return (*near, *far)


def draw_person(chance: Random, home: str) -> str:
    """A name of the home country, or now and then of another part of the world."""
    first, last = (PEOPLE_BY_COUNTRY[home] if home in PEOPLE_BY_COUNTRY and chance.random() < 0.85 else FOREIGN_PEOPLE).split("|")
    return f"{chance.choice(first.split())} {chance.choice(last.split())}"


def mail_address(name: str, host: str) -> str:
    plain = normalize("NFKD", name.lower().translate(ASCII_LETTERS)).encode("ascii", "ignore").decode()
    return f"{'.'.join(plain.split())}@{host}"


class LineOwner(NamedTuple):
    """Who has a line, as far as anybody wrote it down."""

    name: str | None = None
    email: str | None = None
    phone: str | None = None
    company: str | None = None


class StatusChange(NamedTuple):
    at: int
    status: LineStatus


class LinePlan(NamedTuple):
    """A line's way through the history. `activation` None: it was active before."""

    used: bool
    activation: int | None = None
    turns: tuple[StatusChange, ...] = ()
    line_id: int = 0


def add_fleet(world: World, lines: int, first: int, start: int) -> list[LinePlan]:
    """Fill the world with lines, account by account; answers what each of them will do from `first` until `start`."""
    plans: list[LinePlan] = []
    for account_id, count in line_counts(lines).items():
        for plan in draw_line_plans(seeded_random(world.seed, "plans", account_id), count, first, start):
            line = make_line(world, world.accounts[account_id], plan, first, start)
            world.lines[line.id] = line
            plans.append(plan._replace(line_id=line.id))
    return plans


def make_line(world: World, account: ResellerAccount, plan: LinePlan, first: int, start: int) -> Line:
    number = world.next_id("line")
    chance = seeded_random(world.seed, "line", number)
    sponsor_id = _draw_sponsor(chance, account.id, plan)
    prefix = world.sponsors[sponsor_id].prefix
    life = _draw_persona(chance, account.id)
    delivered = (
        first - chance.randrange(200 * DAY_SECONDS, 500 * DAY_SECONDS)
        if plan.used
        else start - chance.randrange(12 * DAY_SECONDS, 60 * DAY_SECONDS)
    )
    esim = not (life.kind == "tracker" and plan.used and chance.random() < 0.35)
    who = draw_owner(chance, account.id, life.kind, life.home_iso2, number) if plan.used else LineOwner()
    use_account = chance.random() >= PREPAID_SHARE.get(account.id, 0.0)
    line = Line(
        number,
        account.id,
        account.reseller_id,
        f"B{(number - LINE_ID_BASE) // 50:04d}",
        *who,
        balance=0 if use_account or not plan.used else chance.randrange(50) * MICRO_EURO // 2,
        use_account=use_account,
        sim=make_free_sim(chance, world.next_id("sim"), number - LINE_ID_BASE, sponsor_id, esim=esim),
        persona=life if plan.used else Persona("stock", life.home_iso2, (), *USAGE_PROFILES["stock"]),
        imsis=[
            ImsiRow(world.next_id("row"), make_imsi(prefix, number - LINE_ID_BASE), make_iccid(prefix, number - LINE_ID_BASE), delivered)
        ],
        numbers=[NumberRow(world.next_id("row"), internal_number(number), delivered)],
        multi_imsis=[],
        statuses=[StatusRow(world.next_id("row"), "PENDING" if chance.random() < 0.6 else "INACTIVE", delivered)],
        own_number=internal_number(number),
        profile_id=MAIN_PROFILES[account.reseller_id, sponsor_id],
    )
    restrict_line(chance, line)
    if plan.used and plan.activation is None:
        age_line(world, chance, line, first)
    return line


def _draw_sponsor(chance: Random, account_id: int, plan: LinePlan) -> int:
    other = OTHER_SPONSORS.get(account_id)
    return other if other is not None and plan.used and chance.random() < 0.2 else MAIN_SPONSORS[account_id]


def draw_owner(chance: Random, account_id: int, kind: str, home: str, number: int) -> LineOwner:
    """Machines are called by what they are, travellers of a firm have its mail host, and some never said who they are."""
    name, firm = draw_person(chance, home), chance.choice(FIRMS)
    if kind == "tracker" or account_id == 8102:
        return LineOwner(f"{chance.choice(VEHICLES)} {number % 1000:03d}", company=firm)
    if account_id == 8103:
        return LineOwner(
            name,
            mail_address(name, f"{''.join(letter for letter in firm.lower() if letter.isalpha())}.example"),
            f"4722{chance.randrange(10**6):06d}",
            firm,
        )
    if chance.random() < 0.2:
        return LineOwner()
    return LineOwner(name, mail_address(name, "post.example") if chance.random() < 0.4 else None)


def restrict_line(chance: Random, line: Line) -> None:
    """Machines do not call; some lines have a steering list of their own."""
    if line.persona.kind == "tracker":
        line.allowed_moc = line.allowed_mtc = False
    if line.reseller_id == FJORD and line.persona.kind != "stock" and chance.random() < 0.1:
        line.steering_list_id = chance.choice((17, 18, 19))


def age_line(world: World, chance: Random, line: Line, first: int) -> None:
    """The line was activated before the history begins; some changed their SIM or number since."""
    delivered = line.statuses[0].start
    activated = delivered + chance.randrange((first - delivered) // 2)
    line.statuses[0].end = line.activated_at = activated
    line.statuses.append(StatusRow(world.next_id("row"), "ACTIVE", activated))
    issue_sim(line.sim, activated)
    changed = activated + (first - activated) * 2 // 3
    if chance.random() < 0.05:
        replace_sim(world, line, changed)
    if chance.random() < 0.06:
        line.numbers[0].end = changed
        line.numbers.append(NumberRow(world.next_id("row"), f"47590{chance.randrange(10)}{line.id:06d}", changed, real=True))
    if chance.random() < 0.07:
        add_multi_imsi(world, line, changed)


def replace_sim(world: World, line: Line, at: int) -> None:
    """Adds a former SIM, which was lost: its IMSI and ICCID stay in the history."""
    current, serial = line.imsis[0], line.id - LINE_ID_BASE + OLD_SERIALS
    prefix = world.sponsors[line.sim.sponsor_id].prefix
    line.imsis.insert(0, ImsiRow(world.next_id("row"), make_imsi(prefix, serial), make_iccid(prefix, serial), current.start, at))
    current.start = at


def add_multi_imsi(world: World, line: Line, at: int) -> None:
    """Adds an IMSI of another sponsor, with which the SIM roams too."""
    other = next(sponsor_id for sponsor_id in RESELLER_SPONSORS[line.reseller_id] if sponsor_id != line.sim.sponsor_id)
    prefix = world.sponsors[other].prefix
    serial = line.id - LINE_ID_BASE + OLD_SERIALS
    line.multi_imsis.append(ImsiRow(world.next_id("row"), make_imsi(prefix, serial), line.iccid, at))


def draw_line_plans(chance: Random, count: int, first: int, start: int) -> Iterator[LinePlan]:
    """One plan for each line of an account; the newest tenth is stock."""
    used = count - max(1, round(count * STOCK_SHARE)) if count > 1 else count
    ends = draw_ending_lines(chance, used)
    for place in range(used):
        activation = first + chance.randrange(start - first) if start > first and chance.random() < NEWCOMER_SHARE else None
        yield LinePlan(True, activation, draw_status_changes(chance, activation or first, start, ends.get(place)))
    yield from (LinePlan(False) for _ in range(count - used))


def draw_ending_lines(chance: Random, used: int) -> dict[int, LineStatus]:
    """Which lines of an account are no longer active at the start: a few of each kind, at least one in an account of 20."""
    numbers = [max(round(used * share), used >= 20) for _, share in END_STATUS_SHARES]
    places = chance.sample(range(used), sum(numbers))
    statuses: list[LineStatus] = [status for (status, _), number in zip(END_STATUS_SHARES, numbers, strict=True) for _ in range(number)]
    return dict(zip(places, statuses, strict=True))


def draw_status_changes(chance: Random, begin: int, start: int, end: LineStatus | None) -> tuple[StatusChange, ...]:
    """The last status by hand, or for some a pause in between."""
    span = start - begin
    if end is not None:
        return (StatusChange(begin + span // 2 + chance.randrange(span // 2 + 1), end),)
    if span > 20 * DAY_SECONDS and chance.random() < PAUSE_SHARE:
        paused = begin + chance.randrange(span // 2)
        return (StatusChange(paused, "SUSPENDED"), StatusChange(paused + chance.randrange(2, 8) * DAY_SECONDS, "ACTIVE"))
    return ()


def luhn_digit(body: str) -> str:
    """The check digit of a body (ITU-T E.118)."""
    doubled = (int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(body)))
    return str(-sum(value // 10 + value % 10 for value in doubled) % 10)


def make_iccid(sponsor_prefix: int, serial: int) -> str:
    """19 digits: issuer, two digits of the sponsor, serial number, check digit."""
    body = f"{ICCID_ISSUER}{sponsor_prefix % 100:02d}{serial:09d}"
    return body + luhn_digit(body)


def make_imsi(sponsor_prefix: int, serial: int) -> str:
    """15 digits: the sponsor's prefix and a serial number."""
    return f"{sponsor_prefix}{serial:010d}"


def draw_eid(chance: Random, serial: int) -> str:
    """32 digits whose remainder by 97 is 1 (SGP.29)."""
    body = f"89049032{chance.randrange(10**10):010d}{serial:012d}"
    return f"{body}{98 - int(body) * 100 % 97:02d}"


def internal_number(line_id: int) -> str:
    """The internal number of a line, in a range of no country."""
    return f"88239{line_id:08d}"


def draw_digits(chance: Random, length: int) -> str:
    return f"{chance.randrange(10**length):0{length}d}"


def draw_activation_code(chance: Random, serial: int) -> str:
    """What the provider's server knows the profile by; the serial number keeps it unique."""
    letters = "".join(chance.choices(ACTIVATION_LETTERS, k=14))
    return f"K2-{letters[:7]}-{letters[7:]}{serial:X}"


def make_free_sim(chance: Random, number: int, serial: int, sponsor_id: int, *, esim: bool) -> Sim:
    """A SIM nobody has yet; a plastic card has nothing to download."""
    secrets = draw_digits(chance, 4), draw_digits(chance, 8), draw_digits(chance, 4), draw_digits(chance, 8)
    code, chip = draw_activation_code(chance, serial), draw_eid(chance, serial)
    confirmation = draw_digits(chance, 6) if chance.random() < 0.04 else None
    host = SMDP_HOSTS[sponsor_id]
    if not esim:
        return Sim(number, False, sponsor_id, "FREE", "", "", *secrets, eid="")
    return Sim(number, True, sponsor_id, "FREE", host, code, *secrets, eid=chip, confirmation_code=confirmation)


def issue_sim(sim: Sim, at: int) -> None:
    """The SIM was taken into use before the history begins."""
    sim.status, sim.affected_at = "AFFECTED", at
    steps = ISSUE_STEPS if sim.esim else ISSUE_STEPS[:1]
    sim.provider = [ProviderRow(status, at + delay, PROFILE_TYPE) for status, delay in steps]
    for earlier, later in pairwise(sim.provider):
        earlier.end = later.start
