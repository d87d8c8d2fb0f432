"""The geography of the simulated world: countries with winter time and main city, regions, networks with invented TADIG codes."""

from collections.abc import Iterable, Sequence
from typing import Literal

from simulators.network.world import Country, Network

# ISO 3166 codes, name, dial code, offset from UTC, latitude and longitude of a main city; one block per continent.
COUNTRIES_BY_CONTINENT = {
    "Europe": """
        no NOR | Norway | 47 | +01:00 | 59.91 10.75
        se SWE | Sweden | 46 | +01:00 | 59.33 18.07
        dk DNK | Denmark | 45 | +01:00 | 55.68 12.57
        fi FIN | Finland | 358 | +02:00 | 60.17 24.94
        is ISL | Iceland | 354 | +00:00 | 64.15 -21.94
        gb GBR | United Kingdom | 44 | +00:00 | 51.51 -0.13
        ie IRL | Ireland | 353 | +00:00 | 53.35 -6.26
        fr FRA | France | 33 | +01:00 | 48.86 2.35
        de DEU | Germany | 49 | +01:00 | 52.52 13.40
        nl NLD | Netherlands | 31 | +01:00 | 52.37 4.90
        be BEL | Belgium | 32 | +01:00 | 50.85 4.35
        lu LUX | Luxembourg | 352 | +01:00 | 49.61 6.13
        ch CHE | Switzerland | 41 | +01:00 | 47.37 8.54
        at AUT | Austria | 43 | +01:00 | 48.21 16.37
        it ITA | Italy | 39 | +01:00 | 41.90 12.50
        es ESP | Spain | 34 | +01:00 | 40.42 -3.70
        pt PRT | Portugal | 351 | +00:00 | 38.72 -9.14
        gr GRC | Greece | 30 | +02:00 | 37.98 23.73
        pl POL | Poland | 48 | +01:00 | 52.23 21.01
        cz CZE | Czechia | 420 | +01:00 | 50.08 14.44
        sk SVK | Slovakia | 421 | +01:00 | 48.15 17.11
        hu HUN | Hungary | 36 | +01:00 | 47.50 19.04
        ro ROU | Romania | 40 | +02:00 | 44.43 26.10
        bg BGR | Bulgaria | 359 | +02:00 | 42.70 23.32
        hr HRV | Croatia | 385 | +01:00 | 45.81 15.98
        si SVN | Slovenia | 386 | +01:00 | 46.06 14.51
        rs SRB | Serbia | 381 | +01:00 | 44.79 20.45
        ee EST | Estonia | 372 | +02:00 | 59.44 24.75
        lv LVA | Latvia | 371 | +02:00 | 56.95 24.11
        lt LTU | Lithuania | 370 | +02:00 | 54.69 25.28
        tr TUR | Türkiye | 90 | +03:00 | 41.01 28.98
        mt MLT | Malta | 356 | +01:00 | 35.90 14.51
        cy CYP | Cyprus | 357 | +02:00 | 35.17 33.36
    """,
    "North America": """
        us USA | United States | 1 | -05:00 | 40.71 -74.01
        ca CAN | Canada | 1 | -05:00 | 43.65 -79.38
        mx MEX | Mexico | 52 | -06:00 | 19.43 -99.13
        cr CRI | Costa Rica | 506 | -06:00 | 9.93 -84.08
        do DOM | Dominican Republic | 1809 | -04:00 | 18.49 -69.93
    """,
    "South America": """
        br BRA | Brazil | 55 | -03:00 | -23.55 -46.63
        ar ARG | Argentina | 54 | -03:00 | -34.60 -58.38
        cl CHL | Chile | 56 | -03:00 | -33.45 -70.67
        co COL | Colombia | 57 | -05:00 | 4.71 -74.07
        pe PER | Peru | 51 | -05:00 | -12.05 -77.04
    """,
    "Asia": """
        jp JPN | Japan | 81 | +09:00 | 35.68 139.69
        kr KOR | South Korea | 82 | +09:00 | 37.57 126.98
        cn CHN | China | 86 | +08:00 | 31.23 121.47
        hk HKG | Hong Kong | 852 | +08:00 | 22.32 114.17
        tw TWN | Taiwan | 886 | +08:00 | 25.03 121.57
        sg SGP | Singapore | 65 | +08:00 | 1.35 103.82
        my MYS | Malaysia | 60 | +08:00 | 3.14 101.69
        th THA | Thailand | 66 | +07:00 | 13.76 100.50
        vn VNM | Vietnam | 84 | +07:00 | 21.03 105.85
        id IDN | Indonesia | 62 | +07:00 | -6.21 106.85
        ph PHL | Philippines | 63 | +08:00 | 14.60 120.98
        in IND | India | 91 | +05:30 | 28.61 77.21
        ae ARE | United Arab Emirates | 971 | +04:00 | 25.20 55.27
        sa SAU | Saudi Arabia | 966 | +03:00 | 24.71 46.68
        qa QAT | Qatar | 974 | +03:00 | 25.29 51.53
        il ISR | Israel | 972 | +02:00 | 32.09 34.78
        jo JOR | Jordan | 962 | +03:00 | 31.95 35.93
    """,
    "Oceania": """
        au AUS | Australia | 61 | +10:00 | -33.87 151.21
        nz NZL | New Zealand | 64 | +12:00 | -36.85 174.76
    """,
    "Africa": """
        eg EGY | Egypt | 20 | +02:00 | 30.04 31.24
        ma MAR | Morocco | 212 | +01:00 | 33.57 -7.59
        tn TUN | Tunisia | 216 | +01:00 | 36.81 10.18
        za ZAF | South Africa | 27 | +02:00 | -26.20 28.05
        ke KEN | Kenya | 254 | +03:00 | -1.29 36.82
        ng NGA | Nigeria | 234 | +01:00 | 6.52 3.38
    """,
}
NORDICS = ("no", "se", "dk", "fi", "is")
BALTICS = ("ee", "lv", "lt")
DACH = ("de", "at", "ch")
BENELUX = ("be", "nl", "lu")
ALPS = ("ch", "at", "it", "fr", "de", "si")
IBERIA = ("es", "pt")
NORTH_AMERICA = ("us", "ca", "mx")
AMERICAS = (*NORTH_AMERICA, "cr", "do", "br", "ar", "cl", "co", "pe")
RADIO_GENERATIONS: dict[str, Literal["3G", "4G", "5G"]] = {"3G": "3G", "4G": "4G", "5G": "5G"}


def _country_rows() -> list[tuple[str, list[str]]]:
    lines = [(continent, line) for continent, block in COUNTRIES_BY_CONTINENT.items() for line in block.strip().splitlines()]
    return [(continent, [cell.strip() for cell in line.split("|")]) for continent, line in lines]


def _make_country(number: int, continent: str, cells: list[str]) -> Country:
    codes, name, dial_code, utc_offset, place = cells
    latitude, longitude = map(float, place.split())
    return Country(number, codes[:2], name, continent, dial_code, utc_offset, latitude, longitude)


def make_countries() -> dict[str, Country]:
    made = (_make_country(number, continent, cells) for number, (continent, cells) in enumerate(_country_rows(), start=1))
    return {one.iso2: one for one in made}


def country_codes(words: str) -> tuple[str, ...]:
    return tuple(words.split())


EUROPEAN_UNION = country_codes("se dk fi ie fr de nl be lu at it es pt gr pl cz sk hu ro bg hr si ee lv lt mt cy")
EUROPE = (*EUROPEAN_UNION, "no", "is", "gb", "ch", "rs", "tr")
ASIA_PACIFIC = country_codes("jp kr cn hk tw sg my th vn id ph in au nz")
MIDDLE_EAST_AND_AFRICA = country_codes("ae sa qa il jo eg ma tn za ke ng")
WHOLE_WORLD = (*EUROPE, *AMERICAS, *ASIA_PACIFIC, *MIDDLE_EAST_AND_AFRICA)

# Per country: name, codes, and G with the newest radio generation; a name that ends in _ has a trailing blank on the wire (quirk 15).
NETWORK_TABLE = """
    no: Telenor 242-01 242-12 5G; Telia_ 242-02 242-05 5G; Ice 242-14 4G
    se: Telia 240-01 5G; Tre 240-02 240-04 4G; Tele2 240-07 5G; Telenor_ 240-08 240-24 5G
    dk: TDC 238-01 238-10 5G; Telenor 238-02 4G; 3 238-06 5G; Telia 238-20 4G
    fi: DNA 244-12 244-03 5G; Elisa 244-05 5G; Telia 244-91 5G
    is: Siminn 274-01 5G; Vodafone_ 274-02 274-03 4G; Nova 274-11 5G
    gb: O2 234-10 234-02 234-11 5G; Vodafone 234-15 5G; Three_ 234-20 5G; EE 234-30 234-33 5G
    ie: Vodafone 272-01 5G; Three 272-02 272-05 5G; Eir 272-03 4G
    fr: Orange 208-01 208-02 5G; SFR 208-10 5G; Free 208-15 4G; Bouygues_Telecom 208-20 208-21 5G
    de: Telekom 262-01 262-06 5G; Vodafone 262-02 5G; O2_ 262-03 262-07 5G
    nl: Vodafone 204-04 5G; KPN 204-08 5G; Odido 204-16 204-20 5G
    be: Proximus 206-01 5G; Orange_ 206-10 5G; BASE 206-20 4G
    lu: POST 270-01 5G; Tango 270-77 4G; Orange 270-99 4G
    ch: Swisscom 228-01 5G; Sunrise 228-02 5G; Salt 228-03 4G
    at: A1 232-01 5G; Magenta_ 232-03 5G; Drei 232-05 232-10 5G
    it: TIM 222-01 5G; Vodafone 222-10 5G; Iliad 222-50 4G; WindTre 222-88 222-99 5G
    es: Vodafone 214-01 5G; Orange 214-03 5G; Yoigo_ 214-04 4G; Movistar 214-07 5G
    pt: Vodafone 268-01 5G; NOS 268-03 5G; MEO 268-06 5G
    gr: Cosmote 202-01 5G; Vodafone 202-05 5G; Nova 202-10 4G
    pl: Plus 260-01 5G; T-Mobile 260-02 5G; Orange 260-03 5G; Play_ 260-06 4G
    cz: T-Mobile 230-01 5G; O2 230-02 5G; Vodafone 230-03 4G
    sk: Orange 231-01 4G; Telekom 231-02 231-04 5G; O2 231-06 4G
    hu: Yettel 216-01 4G; Telekom 216-30 5G; One 216-70 5G
    ro: Vodafone 226-01 5G; Telekom 226-03 4G; Digi 226-05 4G; Orange 226-10 5G
    bg: A1 284-01 5G; Vivacom 284-03 5G; Yettel 284-05 4G
    hr: HT 219-01 5G; Telemach 219-02 4G; A1 219-10 5G
    si: A1 293-40 5G; Telekom_Slovenije 293-41 5G; T-2 293-64 3G; Telemach 293-70 4G
    rs: Yettel 220-01 4G; MTS 220-03 4G; A1_ 220-05 4G
    ee: Telia 248-01 5G; Elisa 248-02 4G; Tele2 248-03 4G
    lv: LMT 247-01 5G; Tele2 247-02 4G; Bite 247-05 4G
    lt: Telia 246-01 5G; Bite 246-02 4G; Tele2_ 246-03 4G
    tr: Turkcell 286-01 4G; Vodafone 286-02 4G; Turk_Telekom 286-03 4G
    mt: Epic 278-01 4G; GO 278-21 4G
    cy: Cyta 280-01 5G; Epic 280-10 4G
    us: AT&T 310-410 310-280 5G; T-Mobile_ 310-260 310-160 5G; Verizon 311-480 5G
    ca: Rogers 302-720 5G; Bell 302-610 5G; Telus 302-220 5G
    mx: Telcel 334-020 5G; Movistar 334-030 4G; AT&T 334-050 334-090 4G
    cr: Kolbi 712-01 712-02 4G; Claro 712-03 4G; Liberty 712-04 4G
    do: Altice 370-01 4G; Claro 370-02 4G
    br: TIM 724-02 724-03 724-04 5G; Claro 724-05 5G; Vivo 724-06 724-10 724-11 5G
    ar: Movistar 722-070 4G; Claro 722-310 4G; Personal 722-34 722-341 4G
    cl: Entel 730-01 730-10 5G; Movistar 730-02 5G; Claro_ 730-03 4G; WOM 730-09 5G
    co: Claro 732-101 4G; Tigo 732-103 732-111 4G; Movistar 732-123 4G
    pe: Movistar 716-06 4G; Claro 716-10 4G; Bitel 716-15 3G; Entel 716-17 4G
    jp: NTT_Docomo 440-10 5G; Rakuten 440-11 5G; SoftBank 440-20 5G; KDDI 440-50 440-51 5G
    kr: SK_Telecom 450-05 5G; LG_Uplus 450-06 5G; KT 450-08 450-02 5G
    cn: China_Mobile 460-00 460-02 460-07 5G; China_Unicom 460-01 5G; China_Telecom 460-11 4G
    hk: CSL 454-00 5G; 3 454-03 5G; SmarTone 454-06 5G; CMHK 454-12 4G
    tw: FarEasTone 466-01 5G; Chunghwa_ 466-92 5G; Taiwan_Mobile 466-97 5G
    sg: Singtel 525-01 5G; M1 525-03 5G; StarHub 525-05 5G
    my: Maxis 502-12 5G; Celcom 502-13 502-19 4G; Digi 502-16 4G; U_Mobile 502-18 4G
    th: TrueMove_H 520-04 5G; AIS 520-03 520-01 5G; dtac 520-05 520-18 4G
    vn: Mobifone 452-01 4G; Vinaphone 452-02 4G; Viettel 452-04 5G
    id: Indosat 510-01 510-21 4G; Telkomsel 510-10 5G; XL 510-11 4G
    ph: Globe 515-02 5G; Smart 515-03 5G; DITO 515-66 4G
    in: Airtel 404-10 404-45 404-40 5G; Vi 404-20 404-11 4G; Jio 405-857 405-840 5G
    ae: Etisalat 424-02 5G; du_ 424-03 5G
    sa: STC 420-01 5G; Mobily 420-03 5G; Zain 420-04 4G
    qa: Ooredoo 427-01 5G; Vodafone 427-02 5G
    il: Partner 425-01 4G; Cellcom 425-02 4G; Pelephone 425-03 5G
    jo: Zain 416-01 4G; Umniah 416-03 4G; Orange 416-77 4G
    au: Telstra 505-01 5G; Optus 505-02 5G; Vodafone 505-03 5G
    nz: One_NZ 530-01 5G; Spark 530-05 5G; 2degrees 530-24 4G
    eg: Orange 602-01 4G; Vodafone 602-02 4G; Etisalat 602-03 4G
    ma: Orange 604-00 4G; IAM_ 604-01 4G; Inwi 604-02 3G
    tn: Orange 605-01 4G; Tunisie_Telecom 605-02 4G; Ooredoo 605-03 4G
    za: Vodacom 655-01 5G; Telkom 655-02 4G; Cell_C 655-07 4G; MTN 655-10 5G
    ke: Safaricom 639-02 4G; Airtel 639-03 4G; Telkom 639-07 3G
    ng: Airtel 621-20 4G; MTN 621-30 4G; Glo 621-50 3G
"""


def make_networks() -> dict[int, Network]:
    prefixes = {cells[0][:2]: cells[0][3:] for _, cells in _country_rows()}
    countries = [line.split(":") for line in NETWORK_TABLE.strip().splitlines()]
    rows = [(iso2.strip(), place, words.split()) for iso2, block in countries for place, words in enumerate(block.split(";"))]
    return {number: make_network(number, iso2, prefixes[iso2], place, words) for number, (iso2, place, words) in enumerate(rows, start=1)}


def make_network(number: int, iso2: str, prefix: str, place: int, words: Sequence[str]) -> Network:
    """One network; `place` is its rank in its country, from 0."""
    codes = tuple((code[:3], code[4:]) for code in words[1:-1])
    tadigs = tuple(f"{prefix}{chr(65 + place)}{chr(65 + twin)}" for twin in range(len(codes)))  # NORAA, NORAB, then NORBA
    return Network(number, iso2, words[0].replace("_", " "), codes, tadigs, RADIO_GENERATIONS[words[-1]])


def network_ids_in(networks: Iterable[Network], countries: Iterable[str]) -> frozenset[int]:
    wanted = frozenset(countries)
    return frozenset(network.network_id for network in networks if network.iso2 in wanted)
