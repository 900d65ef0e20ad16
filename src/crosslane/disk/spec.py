# SPDX-License-Identifier: Apache-2.0
"""Cipher specifications as dm-crypt and LUKS write them, such as ``aes-cbc-essiv:sha256``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crosslane.errors import BadInput

__all__ = ["CIPHERS", "ESSIV_KEY_LEN", "GENERATORS", "MODES", "SECTOR_LENS", "CipherSpec", "parse_spec", "specs_of"]

MODES = ("cbc", "lrw", "xts")
GENERATORS = ("plain", "plain64", "plain64be", "benbi", "essiv:sha256")
SECTOR_LENS = (512, 4096)
CIPHERS = {
    "aes": "aes",
    "cast5": "cast5",
    "des3_ede": "des3_ede",
    "serpent": "serpent",
    "sm4": "sm4",
    "twofish": "twofish",
}
"""Names that headers use, and ours."""
ESSIV_KEY_LEN = 32
"""Bytes of a SHA-256 digest, which has to be a key of the cipher."""
_SPEC = re.compile(r"([a-z0-9_]+)-([a-z]+)-([a-z0-9]+(?::[a-z0-9]+)?)")


@dataclass(frozen=True)
class CipherSpec:
    """A cipher, a mode and an iv generator, all by our names."""

    cipher: str
    mode: str
    generator: str

    def __str__(self) -> str:
        return f"{self.cipher}-{self.mode}-{self.generator}"

    @property
    def algorithm(self) -> str:
        """The algorithm that encrypts sectors."""
        return f"{self.mode}({self.cipher})"


def parse_spec(text: str) -> CipherSpec:
    """Read a specification; raises BadInput for one that the workload does not know."""
    match = _SPEC.fullmatch(text)
    if match is None or match[1] not in CIPHERS or match[2] not in MODES or match[3] not in GENERATORS:
        raise BadInput(
            f"the cipher specification {text!r} is none that can be judged: give CIPHER-MODE-GENERATOR of the ciphers "
            f"{', '.join(CIPHERS)}, the modes {', '.join(MODES)} and the generators {', '.join(GENERATORS)}"
        )
    return CipherSpec(CIPHERS[match[1]], match[2], match[3])


def specs_of(cipher: str, mode: str, key_lens: tuple[int, ...]) -> tuple[CipherSpec, ...]:
    """All specifications of an algorithm: essiv where a digest is a key of the cipher, benbi where dm-crypt has lrw."""
    fits = {"essiv:sha256": ESSIV_KEY_LEN in key_lens, "benbi": mode == "lrw"}
    return tuple(CipherSpec(cipher, mode, name) for name in GENERATORS if fits.get(name, True))
