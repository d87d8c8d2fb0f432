"""The lines of every account, as they are before anybody uses them in the history."""

from typing import NamedTuple

from clients.sandbox.ocs.dice import Random, dice
from clients.sandbox.ocs.entities import DAY, MICRO, Account, ImsiRow, Line, NumberRow, StatusRow
from clients.sandbox.ocs.seed.cards import free_sim, issue
from clients.sandbox.ocs.seed.identity import SERIALS, iccid, imsi, own_number, real_number
from clients.sandbox.ocs.seed.names import FIRMS, host_of, mailbox, person, vehicle
from clients.sandbox.ocs.seed.personas import persona, stock
from clients.sandbox.ocs.seed.plan import Plan, draw_plans
from clients.sandbox.ocs.seed.resellers import line_counts
from clients.sandbox.ocs.seed.sponsors import FJORD, LUMEN, MAIN_PROFILES, MERIDIAN, SPONSORED, SPX
from clients.sandbox.ocs.state import World

MAIN_SPONSORS = {8101: SPX, 8102: MERIDIAN, 8103: SPX, 8104: SPX, 8201: SPX, 8202: LUMEN}
"""Whose SIMs an account stocks. Choice: free SIMs are of this sponsor, so that its templates can be issued from stock."""
OTHER_SPONSORS = {8102: SPX, 8201: LUMEN}
OLD_SERIALS = 500_000_000
"""Serial numbers of SIMs that were replaced."""
PREPAID_SHARE = {8101: 0.3, 8201: 0.5}
"""Lines that pay use outside of packages from a balance of their own."""


class Owner(NamedTuple):
    """Who has a line, as far as anybody wrote it down."""

    name: str | None = None
    email: str | None = None
    phone: str | None = None
    company: str | None = None


def add_fleet(world: World, lines: int, first: int, start: int) -> list[Plan]:
    """Fill the world with lines, account by account; answers what each of them will do from `first` until `start`."""
    plans: list[Plan] = []
    for account_id, count in line_counts(lines).items():
        for plan in draw_plans(dice(world.seed, "plans", account_id), count, first, start):
            line = new_line(world, world.accounts[account_id], plan, first, start)
            world.lines[line.id] = line
            plans.append(plan._replace(line_id=line.id))
    return plans


def new_line(world: World, account: Account, plan: Plan, first: int, start: int) -> Line:
    """One line with its SIM."""
    number = world.next_id("line")
    chance = dice(world.seed, "line", number)
    sponsor_id = sponsor_of(chance, account.id, plan)
    prefix = world.sponsors[sponsor_id].prefix
    life = persona(chance, account.id)
    delivered = first - chance.randrange(200 * DAY, 500 * DAY) if plan.used else start - chance.randrange(12 * DAY, 60 * DAY)
    esim = not (life.kind == "tracker" and plan.used and chance.random() < 0.35)
    who = owner(chance, account.id, life.kind, life.home_iso2, number) if plan.used else Owner()
    use_account = chance.random() >= PREPAID_SHARE.get(account.id, 0.0)
    line = Line(
        number,
        account.id,
        account.reseller_id,
        f"B{(number - SERIALS) // 50:04d}",
        *who,
        balance=0 if use_account or not plan.used else chance.randrange(50) * MICRO // 2,
        use_account=use_account,
        sim=free_sim(chance, world.next_id("sim"), number - SERIALS, sponsor_id, esim=esim),
        persona=life if plan.used else stock(life.home_iso2),
        imsis=[ImsiRow(world.next_id("row"), imsi(prefix, number - SERIALS), iccid(prefix, number - SERIALS), delivered)],
        numbers=[NumberRow(world.next_id("row"), own_number(number), delivered)],
        multi_imsis=[],
        statuses=[StatusRow(world.next_id("row"), "PENDING" if chance.random() < 0.6 else "INACTIVE", delivered)],
        own_number=own_number(number),
        profile_id=MAIN_PROFILES[account.reseller_id, sponsor_id],
    )
    restrict(chance, line)
    if plan.used and plan.activation is None:
        grow_old(world, chance, line, first)
    return line


def sponsor_of(chance: Random, account_id: int, plan: Plan) -> int:
    """Mostly the account's sponsor."""
    other = OTHER_SPONSORS.get(account_id)
    return other if other is not None and plan.used and chance.random() < 0.2 else MAIN_SPONSORS[account_id]


def owner(chance: Random, account_id: int, kind: str, home: str, number: int) -> Owner:
    """Machines are called by what they are, travellers of a firm have its mail host, and some never said who they are."""
    name, firm = person(chance, home), chance.choice(FIRMS)
    if kind == "tracker" or account_id == 8102:
        return Owner(vehicle(chance, number), company=firm)
    if account_id == 8103:
        return Owner(name, mailbox(name, host_of(firm)), f"4722{chance.randrange(10**6):06d}", firm)
    if chance.random() < 0.2:
        return Owner()
    return Owner(name, mailbox(name, "post.example") if chance.random() < 0.4 else None)


def restrict(chance: Random, line: Line) -> None:
    """Machines do not call; some lines have a steering list of their own."""
    if line.persona.kind == "tracker":
        line.allowed_moc = line.allowed_mtc = False
    if line.reseller_id == FJORD and line.persona.kind != "stock" and chance.random() < 0.1:
        line.steering_list_id = chance.choice((17, 18, 19))


def grow_old(world: World, chance: Random, line: Line, first: int) -> None:
    """The line was activated before the history begins; some changed their SIM or number since."""
    delivered = line.statuses[0].start
    activated = delivered + chance.randrange((first - delivered) // 2)
    line.statuses[0].end = line.activated_at = activated
    line.statuses.append(StatusRow(world.next_id("row"), "ACTIVE", activated))
    issue(line.sim, activated)
    changed = activated + (first - activated) * 2 // 3
    if chance.random() < 0.05:
        replace_sim(world, line, changed)
    if chance.random() < 0.06:
        line.numbers[0].end = changed
        line.numbers.append(NumberRow(world.next_id("row"), real_number(chance, line.id), changed, real=True))
    if chance.random() < 0.07:
        add_multi_imsi(world, line, changed)


def replace_sim(world: World, line: Line, at: int) -> None:
    """The first SIM was lost: its IMSI and ICCID stay in the history."""
    current, serial = line.imsis[0], line.id - SERIALS + OLD_SERIALS
    prefix = world.sponsors[line.sim.sponsor_id].prefix
    line.imsis.insert(0, ImsiRow(world.next_id("row"), imsi(prefix, serial), iccid(prefix, serial), current.start, at))
    current.start = at


def add_multi_imsi(world: World, line: Line, at: int) -> None:
    """The SIM roams with another sponsor's IMSI too."""
    other = next(sponsor_id for sponsor_id in SPONSORED[line.reseller_id] if sponsor_id != line.sim.sponsor_id)
    prefix = world.sponsors[other].prefix
    serial = line.id - SERIALS + OLD_SERIALS
    line.multi_imsis.append(ImsiRow(world.next_id("row"), imsi(prefix, serial), line.iccid, at))
