# SPDX-License-Identifier: Apache-2.0
"""Derive the affine maps that turn the S-box of AES into the S-box of SM4, and print them as nibble tables.

Both S-boxes invert in GF(2^8), each in its own representation of the field, between affine maps:

- AES (FIPS 197, 5.1.1): ``S_aes(x) = M * x^-1 + 0x63``, modulo ``x^8 + x^4 + x^3 + x + 1``.
- SM4 (F. Liu and others, "Analysis of the SMS4 Block Cipher", ACISP 2007): ``S_sm4(x) = A * (A * x + c)^-1 + c``
  with ``c = 0xD3``, A circulant with first row 0xD3, modulo ``x^8 + x^7 + x^6 + x^5 + x^4 + x^2 + 1``.

With an isomorphism ``phi`` from the second field to the first, ``S_sm4 = post . S_aes . pre`` where
``pre(x) = phi(A * x + c)`` and ``post(y) = A * phi^-1(M^-1 * (y + 0x63)) + c``. Both are affine, so each is the sum
of two look-ups of 16 entries, one for each nibble: what PSHUFB does for 16 bytes at once. The constant of a map is
in the table of its low nibble.

Where many rounds follow each other, the state can stay on the other side of ``into(x) = phi(A * x)``, the linear part
of ``pre``: its constant goes into the round keys, and the look-ups behind AES's S-box bring the linear transformation
with them. In ``L(B) = B ^ (B <<< 2) ^ (B <<< 10) ^ (B <<< 18) ^ (B <<< 24)`` byte m, 0 the most significant, is
``F(B[m]) + G(B[m+1]) + G(B[m+2]) + (F + G)(B[m+3])``: ``G`` rotates a byte by two bits to the left, and ``F`` adds to a
byte what is left of it when it is shifted so. So a round looks up ``first = into . F . post`` and
``second = into . G . post``, and ``from`` undoes ``into`` at the end.

Run as a script: prints the tables of ``sm4_x86_64_aesni_avx.c`` and ``sm4_avx2.h``, after all 256 values were checked
against the S-box that the standard prints and, for the latter, through L in each place of a word. Exit status 0, or 1
with one sentence if a value is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import xor

__all__ = ["derive", "derive_round", "main", "nibble_tables"]

AES_MODULUS = 0x11B
AES_CONSTANT = 0x63
AES_ROW = 0xF1
SM4_MODULUS = 0x1F5
SM4_CONSTANT = 0xD3
SM4_ROW = 0xD3

# GB/T 32907-2016, section 6.2 a), table 1.
SM4_SBOX = bytes.fromhex(
    "d690e9fecce13db716b614c228fb2c052b679a762abe04c3aa44132649860699"
    "9c4250f491ef987a33540b43edcfac62e4b31ca9c908e89580df94fa758f3fa6"
    "4707a7fcf37317ba83593c19e6854fa8686b81b27164da8bf8eb0f4b70569d35"
    "1e240e5e6358d1a225227c3b01217887d40046579fd327524c3602e7a0c4c89e"
    "eabf8ad240c738b5a3f7f2cef96115a1e0ae5da49b341a55ad933230f58cb1e3"
    "1df6e22e8266ca60c02923ab0d534e6fd5db3745defd8e2f03ff6a726d6c5b51"
    "8d1baf92bbddbc7f11d95c411f105ad80ac13188a5cd7bbd2d74d012b8e5b4b0"
    "8969974a0c96777e65b9f109c56ec68418f07dec3adc4d2079ee5f3ed7cb3948"
)

Table = tuple[int, ...]


def _multiply(a: int, b: int, modulus: int) -> int:
    """The product of two elements of GF(2^8) with the given modulus."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(14, 7, -1):
        if product >> bit & 1:
            product ^= modulus << (bit - 8)
    return product


def _inverse(a: int, modulus: int) -> int:
    """a^254: the inverse of a, and 0 for 0."""
    result = 1
    for _ in range(254):
        result = _multiply(result, a, modulus)
    return result


def _add(elements: Iterable[int]) -> int:
    """The sum of field elements."""
    return reduce(xor, elements, 0)


def _parity(v: int) -> int:
    return v.bit_count() & 1


def _aes_linear(x: int) -> int:
    """M of FIPS 197: output bit i sums input bits i, i+4, i+5, i+6, i+7 modulo 8."""
    return sum(_parity(((AES_ROW << i | AES_ROW >> (8 - i)) & 0xFF) & x) << i for i in range(8))


def _sm4_linear(x: int) -> int:
    """A: each row is the row above rotated right by one; the first row gives the most significant bit."""
    return sum(_parity(((SM4_ROW >> i | SM4_ROW << (8 - i)) & 0xFF) & x) << (7 - i) for i in range(8))


def _invert(table: Sequence[int]) -> Table:
    """The inverse of a permutation of 0..255."""
    inverse = [0] * 256
    for x, y in enumerate(table):
        inverse[y] = x
    return tuple(inverse)


def _isomorphism() -> Table:
    """phi: sends the class of x in SM4's field to the smallest root of SM4's modulus in AES's field."""
    for root in range(2, 256):
        powers = [1]
        for _ in range(8):
            powers.append(_multiply(powers[-1], root, AES_MODULUS))
        images = [_add(powers[i] for i in range(9) if v >> i & 1) for v in (*range(256), SM4_MODULUS)]
        if images[-1] == 0:
            return tuple(images[:-1])
    raise AssertionError("two fields of 256 elements are always isomorphic")


def derive() -> tuple[Table, Table]:
    """The maps ``pre`` and ``post`` as tables of 256 values."""
    phi = _isomorphism()
    phi_inverse = _invert(phi)
    aes_inverse = _invert([_aes_linear(x) for x in range(256)])
    pre = tuple(phi[_sm4_linear(x) ^ SM4_CONSTANT] for x in range(256))
    post = tuple(_sm4_linear(phi_inverse[aes_inverse[y ^ AES_CONSTANT]]) ^ SM4_CONSTANT for y in range(256))
    return pre, post


def derive_round() -> tuple[Table, Table, Table, Table]:
    """The maps ``into``, ``first``, ``second`` and ``from`` as tables of 256 values."""
    pre, post = derive()
    into = tuple(v ^ pre[0] for v in pre)
    first = tuple(into[v ^ v << 2 & 0xFF] for v in post)
    second = tuple(into[(v << 2 | v >> 6) & 0xFF] for v in post)
    return into, first, second, _invert(into)


def nibble_tables(affine: Sequence[int]) -> tuple[Table, Table]:
    """Split an affine map (256 values) into ``lo`` and ``hi``: ``affine[x] = lo[x & 15] ^ hi[x >> 4]``."""
    lo = tuple(affine[n] for n in range(16))
    hi = tuple(affine[n << 4] ^ affine[0] for n in range(16))
    return lo, hi


def _first_wrong(pre: tuple[Table, Table], post: tuple[Table, Table]) -> int | None:
    """The first byte for which the tables around AES's S-box do not give what the standard prints."""
    for x in range(256):
        y = pre[0][x & 15] ^ pre[1][x >> 4]
        y = _aes_linear(_inverse(y, AES_MODULUS)) ^ AES_CONSTANT
        if post[0][y & 15] ^ post[1][y >> 4] != SM4_SBOX[x]:
            return x
    return None


def _transform(word: Sequence[int]) -> bytes:
    """T = L(S(.)), section 6.2: four bytes, the first the most significant."""
    b = int.from_bytes(bytes(SM4_SBOX[x] for x in word), "big")
    return _add((b << n | b >> (32 - n)) & 0xFFFFFFFF for n in (0, 2, 10, 18, 24)).to_bytes(4, "big")


def _transform_mapped(word: Sequence[int], maps: Sequence[Table], constant: int) -> bytes:
    """The same through AES's S-box and the maps."""
    into, first, second, out_of = maps
    b = [_aes_linear(_inverse(into[x] ^ constant, AES_MODULUS)) ^ AES_CONSTANT for x in word]
    u, v = [first[x] for x in b], [second[x] for x in b]
    return bytes(out_of[u[m] ^ v[(m + 1) % 4] ^ v[(m + 2) % 4] ^ u[(m + 3) % 4] ^ v[(m + 3) % 4]] for m in range(4))


def _first_wrong_word(maps: Sequence[Table], constant: int) -> int | None:
    """The first byte with which a word has a wrong transform, in whichever place it stands."""
    for x in range(256):
        for place in range(4):
            word = [(x * 7 + place) & 0xFF] * 4
            word[place] = x
            if _transform_mapped(word, maps, constant) != _transform(word):
                return x
    return None


def _as_c(name: str, table: Table) -> str:
    rows = [", ".join(f"0x{v:02x}" for v in table[i : i + 8]) for i in (0, 8)]
    return f"static const uint8_t {name}[16] = {{{rows[0]},\n{' ' * (len(name) + 28)}{rows[1]}}};"


def main() -> int:
    """Print the tables; the exit status."""
    pre, post = (nibble_tables(table) for table in derive())
    maps, constant = derive_round(), pre[0][0]
    wrong = _first_wrong(pre, post)
    if wrong is None:
        wrong = _first_wrong_word(maps, constant)
    if wrong is not None:
        print(f"derive_affine.py: the tables give a wrong S-box at 0x{wrong:02x}; nothing was printed", file=sys.stderr)
        return 1
    for name, table in zip(("pre_lo", "pre_hi", "post_lo", "post_hi"), (*pre, *post), strict=True):
        print(_as_c(name, table))
    print(f"#define INTO_CONSTANT 0x{constant:02x}")
    for name, table in zip(("into", "first", "second", "from"), maps, strict=True):
        for half, nibbles in zip(("lo", "hi"), nibble_tables(table), strict=True):
            print(_as_c(f"{name}_{half}", nibbles))
    return 0


if __name__ == "__main__":
    sys.exit(main())
