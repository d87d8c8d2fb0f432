"""The countries of the simulated world, with the winter time and the main city of each."""

from clients.sandbox.ocs.places import Country

# ISO 3166 codes, name, dial code, offset from UTC, latitude and longitude of a main city; one block per continent.
BY_CONTINENT = {
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


def rows() -> list[tuple[str, list[str]]]:
    """Continent and cells of every country."""
    lines = [(continent, line) for continent, block in BY_CONTINENT.items() for line in block.strip().splitlines()]
    return [(continent, [cell.strip() for cell in line.split("|")]) for continent, line in lines]


def country(number: int, continent: str, cells: list[str]) -> Country:
    """One row of the table."""
    codes, name, dial_code, utc_offset, place = cells
    latitude, longitude = map(float, place.split())
    return Country(number, codes[:2], name, continent, dial_code, utc_offset, latitude, longitude)


def countries() -> dict[str, Country]:
    """Every country by its lower-case ISO code."""
    made = (country(number, continent, cells) for number, (continent, cells) in enumerate(rows(), start=1))
    return {one.iso2: one for one in made}


def long_codes() -> dict[str, str]:
    """The three-letter code of each country: TADIG codes begin with it."""
    return {cells[0][:2]: cells[0][3:] for _, cells in rows()}
