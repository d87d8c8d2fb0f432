"""Reads a QR code from its picture (ISO/IEC 18004), so that what a phone would see is compared, not what was meant to be drawn.

Undamaged symbols of the versions 1 to 6, upright, and alone on their picture; that is all that pages and mails draw.
"""

from io import BytesIO

from PIL import Image

Matrix = list[list[bool]]
LEVELS = {0b01: "L", 0b00: "M", 0b11: "Q", 0b10: "H"}
BLOCKS = {  # data codewords of each block, by version and level
    1: {"L": [19], "M": [16], "Q": [13], "H": [9]},
    2: {"L": [34], "M": [28], "Q": [22], "H": [16]},
    3: {"L": [55], "M": [44], "Q": [17] * 2, "H": [13] * 2},
    4: {"L": [80], "M": [32] * 2, "Q": [24] * 2, "H": [9] * 4},
    5: {"L": [108], "M": [43] * 2, "Q": [15, 15, 16, 16], "H": [11, 11, 12, 12]},
    6: {"L": [68] * 2, "M": [27] * 4, "Q": [19] * 4, "H": [15] * 4},
}
MASKS = (
    lambda row, column: (row + column) % 2,
    lambda row, column: row % 2,
    lambda row, column: column % 3,
    lambda row, column: (row + column) % 3,
    lambda row, column: (row // 2 + column // 3) % 2,
    lambda row, column: row * column % 2 + row * column % 3,
    lambda row, column: (row * column % 2 + row * column % 3) % 2,
    lambda row, column: ((row + column) % 2 + row * column % 3) % 2,
)
LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"


def read_qr(picture: bytes) -> str:
    return decoded(matrix_of(Image.open(BytesIO(picture)).convert("L")))


def matrix_of(image: Image.Image) -> Matrix:
    """The modules: the finder pattern in the corner is seven of them wide."""
    dark = image.point([255 if value < 128 else 0 for value in range(256)])
    box = dark.getbbox()
    assert box is not None, "the picture is white"
    left, top, right, _ = box
    run = next(x for x in range(left, right) if not dark.getpixel((x, top + 1))) - left
    size = round((right - left) / (run / 7))
    module = (right - left) / size
    middle = [int((place + 0.5) * module) for place in range(size)]
    return [[bool(dark.getpixel((left + x, top + y))) for x in middle] for y in middle]


def decoded(matrix: Matrix) -> str:
    size = len(matrix)
    version = (size - 17) // 4
    spots = [(8, x) for x in (0, 1, 2, 3, 4, 5, 7, 8)] + [(y, 8) for y in (7, 5, 4, 3, 2, 1, 0)]
    form = int("".join(str(int(matrix[y][x])) for y, x in spots), 2) ^ 0x5412
    mask = MASKS[form >> 10 & 7]
    bits = "".join(str(int(matrix[y][x] ^ (not mask(y, x)))) for y, x in way(size, version))
    words = [int(bits[start : start + 8], 2) for start in range(0, len(bits) - 7, 8)]
    return text_of(in_order(words, BLOCKS[version][LEVELS[form >> 13]]))


def way(size: int, version: int) -> list[tuple[int, int]]:
    """The data modules in their order: pairs of columns from the right, up and down."""
    found: list[tuple[int, int]] = []
    columns = [column for column in range(size - 1, 0, -1) if column != 6]
    pairs = [(column, column - 1) for column in range(size - 1, 6, -2)] + [(5, 4), (3, 2), (1, 0)]
    assert len(columns) == 2 * len(pairs) - 1
    for turn, pair in enumerate(pairs):
        rows = range(size - 1, -1, -1) if turn % 2 == 0 else range(size)
        found += [(row, column) for row in rows for column in pair if not is_fixed(row, column, size, version)]
    return found


def is_fixed(row: int, column: int, size: int, version: int) -> bool:
    """Whether it belongs to a pattern: finders with their formats, timing, alignment."""
    corner = (row < 9 and (column < 9 or column >= size - 8)) or (row >= size - 8 and column < 9)
    center = size - 7
    aligned = version > 1 and abs(row - center) <= 2 and abs(column - center) <= 2
    return corner or row == 6 or column == 6 or aligned


def in_order(words: list[int], blocks: list[int]) -> list[int]:
    """The data of all blocks, one after the other: they are woven into each other."""
    woven, made = iter(words), [list[int]() for _ in blocks]
    for place in range(max(blocks)):
        for block, length in zip(made, blocks, strict=True):
            if place < length:
                block.append(next(woven))
    return [word for block in made for word in block]


def text_of(words: list[int]) -> str:
    """The segments, in bytes or in capitals."""
    bits, text = "".join(f"{word:08b}" for word in words), ""

    def take(count: int) -> int:
        nonlocal bits
        taken, bits = bits[:count], bits[count:]
        return int(taken, 2)

    while len(bits) >= 4 and (mode := take(4)):
        if mode == 4:
            text += bytes(take(8) for _ in range(take(8))).decode()
            continue
        assert mode in (1, 2), f"mode {mode}"
        if mode == 2:
            count = take(9)
            for _ in range(count // 2):
                pair = take(11)
                text += LETTERS[pair // 45] + LETTERS[pair % 45]
            text += LETTERS[take(6)] if count % 2 else ""
        else:
            count = take(10)
            text += "".join(f"{take(10):03d}" for _ in range(count // 3))
            text += f"{take((0, 4, 7)[count % 3]):0{count % 3}d}" if count % 3 else ""
    return text
