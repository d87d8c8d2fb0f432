"""Who uses the lines: people, their firms and their vehicles. All invented."""

from unicodedata import normalize

from clients.sandbox.ocs.dice import Random

PEOPLE = {
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
ELSEWHERE = "Mei Kenji Fatima Omar Chidi Amara Thiago Ananya | Tanaka Chen Hassan Okafor Mensah Silva Rojas Sharma Nguyen Kim"
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
ASCII = str.maketrans({"ø": "o", "æ": "ae", "ł": "l", "ß": "ss"})


def person(chance: Random, home: str) -> str:
    """A name of the home country, or now and then of another part of the world."""
    first, last = (PEOPLE[home] if home in PEOPLE and chance.random() < 0.85 else ELSEWHERE).split("|")
    return f"{chance.choice(first.split())} {chance.choice(last.split())}"


def mailbox(name: str, host: str) -> str:
    """The address a person of this name might have."""
    plain = normalize("NFKD", name.lower().translate(ASCII)).encode("ascii", "ignore").decode()
    return f"{'.'.join(plain.split())}@{host}"


def vehicle(chance: Random, number: int) -> str:
    """A machine with a line in it."""
    return f"{chance.choice(VEHICLES)} {number % 1000:03d}"


def host_of(firm: str) -> str:
    """A firm's mail host."""
    return f"{''.join(letter for letter in firm.lower() if letter.isalpha())}.example"
