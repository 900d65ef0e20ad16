# SPDX-License-Identifier: Apache-2.0
"""Twenty planted faults over SM4 and AES, one a folder for ``--impls``, and what each of them shrinks to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslane.findings.case import Case

__all__ = ["AEAD_FAULTS", "DIRTY", "FAULTS", "KEEPING", "LEAST", "SECTORS", "TWO", "Sown", "is_small", "lines", "sow"]

_PLANTED = Path(__file__).parent / "planted"
_NAMES = [
    "CARRY_64",
    "WIDE_32",
    "IV_KEPT",
    "IV_KEPT_AT_8",
    "CBC_IN_PLACE",
    "CBC_IV_KEPT",
    "XTS_IN_PLACE",
    "XTS_TAIL_15",
    "READS_TAIL",
    "READS_BEFORE",
    "KEY_24",
    "KEY_32",
    "LANES_4",
    "LANES_8",
    "WRITES_TAIL",
    "ALIGN_3",
    "CFB_TAIL",
    "READS_KEY",
    "CTR_IN_PLACE",
    "CTR_TAIL",
    "GHASH_6",
    "GHASH_5",
    "CTR_DECRYPT_3",
    "CTR_DECRYPT_IN_PLACE",
    "MAC_2",
    "KEEPS",
    "KEEPS_COUNT",
    "DIRTY",
    "XTS_SECTOR_BEFORE",
    "XTS_SHORT_NUMBER",
]
_IMPL = """# SPDX-License-Identifier: Apache-2.0
driver = "{driver}"
isa = "any"
features = []
priority = 150
ways = 8
sources = ["modes_leaf.c", "{cipher}.h", "fault.h"]
fused = ["{mode}"]
paths = ["all"]
constant_time = false
description = "Planted by the tests."
"""


@dataclass(frozen=True)
class Sown:
    """One planted fault: where, and what its finding must be. ``registers`` plants at the entry of two functions."""

    name: str
    cipher: str
    mode: str
    faults: tuple[str, ...]
    symptom: str
    fault_class: str
    registers: bool = False

    @property
    def driver(self) -> str:
        """The driver's name."""
        return f"sown-{self.name.replace('_', '-')}-{self.cipher}"

    @property
    def algorithm(self) -> str:
        """The algorithm that the fault is in."""
        return f"{self.mode}({self.cipher})"


def _sown(name: str, cipher: str, mode: str, symptom: str, fault_class: str) -> Sown:
    return Sown(name, cipher, mode, (name.upper(),), symptom, fault_class)


FAULTS = (
    _sown("carry_64", "sm4", "ctr", "iv", "counter:64"),
    _sown("wide_32", "aes", "ctr", "output", "blocks:4+counter:32"),
    _sown("iv_kept", "sm4", "ctr", "iv", "any"),
    _sown("iv_kept_at_8", "aes", "ctr", "iv", "blocks:=8"),
    _sown("cbc_in_place", "sm4", "cbc", "output", "blocks:2+decrypt+in_place"),
    _sown("cbc_iv_kept", "aes", "cbc", "iv", "encrypt"),
    _sown("xts_in_place", "aes", "xts", "output", "in_place+stealing"),
    _sown("xts_tail_15", "sm4", "xts", "output", "stealing"),
    _sown("reads_tail", "sm4", "ctr", "guard_read", "in:behind+tail"),
    _sown("reads_before", "aes", "ecb", "guard_read", "in:before+encrypt"),
    # {0} is the register of the architecture.
    Sown("register", "sm4", "ecb", (), "abi", "register:{0}+encrypt", registers=True),
    Sown("register_at_8", "aes", "ctr", (), "abi", "register:{0}+blocks:8", registers=True),
    _sown("key_24", "aes", "ecb", "output", "key_len:24"),
    _sown("key_32", "aes", "cbc", "output", "key_len:32"),
    _sown("lanes_4", "sm4", "ecb", "output", "blocks:4+data+encrypt"),
    _sown("lanes_8", "aes", "ecb", "output", "blocks:8+data+decrypt"),
    _sown("writes_tail", "sm4", "ctr", "canary", "out:behind+tail"),
    _sown("align_3", "aes", "ctr", "output", "align"),
    _sown("cfb_tail", "aes", "cfb", "output", "tail"),
    _sown("reads_key", "sm4", "ecb", "guard_read", "key:behind"),
)
AEAD_FAULTS = (
    _sown("ghash_6", "aes", "gcm", "output", "tag+blocks:=6"),
    _sown("ghash_5", "sm4", "gcm", "output", "tag+blocks:=5"),
    _sown("ctr_decrypt_3", "aes", "ccm", "output", "refuses+blocks:=3+decrypt"),
    _sown("ctr_decrypt_in_place", "sm4", "ccm", "output", "refuses+blocks:2+decrypt+in_place"),
    _sown("mac_2", "aes", "ccm", "output", "tag+blocks:=3"),
)
KEEPING = (
    _sown("keeps", "sm4", "cbc", "output", "neighbours"),
    _sown("keeps_count", "aes", "cbc", "output", "neighbours"),
)
DIRTY = _sown("dirty", "aes", "ctr", "output", "dirty_state")
SECTORS = (
    _sown("xts_sector_before", "sm4", "xts", "output", ""),
    _sown("xts_short_number", "sm4", "xts", "output", ""),
)
TWO = Sown("two", "sm4", "ctr", ("CTR_IN_PLACE", "CTR_TAIL"), "output", "")


_PLAIN = ("setkey 16", "setiv 16")
_NO_IV = ("setkey 16", "setiv 0")
# fmt: off
LEAST: dict[str, tuple[str, ...]] = {
    "carry_64": ("setkey 16", f"setiv {'00' * 8 + 'ff' * 8}", "update 1 iv"),
    "wide_32": ("setkey 16", f"setiv {'00' * 12}fffffffd", "update 64"),
    "iv_kept": (*_PLAIN, "update 1 iv"),
    "iv_kept_at_8": (*_PLAIN, "update 128 iv"),
    "cbc_in_place": ("decrypt", *_PLAIN, "update 32 in place"),
    "cbc_iv_kept": (*_PLAIN, "update 16 iv"),
    "xts_in_place": ("setkey 32", "setiv 16", "update 17 in place"),
    "xts_tail_15": ("setkey 32", "setiv 16", "update 31"),
    "reads_tail": (*_PLAIN, "update 1 in end+0"),
    "reads_before": (*_NO_IV, "update 16 in start+0"),
    "register": (*_NO_IV, "update 0"),
    "register_at_8": (*_PLAIN, "update 128"),
    "key_24": ("setkey 24", "setiv 0", "update 16"),
    "key_32": ("setkey 32", "setiv 16", "update 16"),
    "lanes_4": (*_NO_IV, f"update {'00' * 47 + '01' + '00' * 16}"),
    "lanes_8": ("decrypt", *_NO_IV, f"update {'00' * 47 + '01' + '00' * 80}"),
    "writes_tail": (*_PLAIN, "update 1"),
    "align_3": (*_PLAIN, "update 1 in middle+3"),
    "cfb_tail": (*_PLAIN, "update 1"),
    "reads_key": ("setkey 16 in end+0",),
    "dirty": (*_PLAIN, "update 1"),
    "ghash_6": ("setkey 16", "setiv 1", "update 96", "final 0", "tag 0"),
    "ghash_5": ("setkey 16", "setiv 1", "update 80", "final 0", "tag 0"),
    "ctr_decrypt_3": (
        "decrypt", "setkey 16", "setiv 7",
        "update a24675fc5f1b01378bfcbebe950486e34b8fe090ebdc357de7c767b95172cd846a496670b423568cb3d32597b4ca819d",
        "final 0", "tag eae20269",
    ),
    "ctr_decrypt_in_place": (
        "decrypt", "setkey 16", "setiv 7",
        "update 9a8e6598ff799469d9b43c6246268cd99bbae29016f24532a9dec0e05e8aafbd in place", "final 0", "tag 36ae149a",
    ),
    "mac_2": ("setkey 16", "setiv 7", "update 33", "final 0", "tag 0"),
}
# fmt: on
"""The least case of each fault as ``lines`` says it: the length of what is all zeros, or bytes."""


def sow(folder: Path, plants: Sequence[Sown]) -> Path:
    """Write every plant as ``<folder>/<cipher>/<name>`` and return ``folder``, which ``--impls`` takes."""
    for plant in plants:
        place = folder / plant.cipher / plant.name
        place.mkdir(parents=True)
        for name in ("modes_leaf.c", f"{plant.cipher}.h"):
            shutil.copy(_PLANTED / name, place / name)
        bits = sum(1 << _NAMES.index(fault) for fault in plant.faults)
        spoilt = 2 if plant is DIRTY else int(plant.registers)
        (place / "fault.h").write_text(
            "/* SPDX-License-Identifier: Apache-2.0 */\n"
            f'#include "{plant.cipher}.h"\n#define FAULTS UINT32_C({bits})\n'
            f"#define GETTER {plant.cipher}_{plant.name}\n#define REGISTERS {spoilt}\n"
        )
        text = _IMPL.format(driver=plant.driver, cipher=plant.cipher, mode=plant.mode)
        (place / "impl.toml").write_text(text)
    return folder


def lines(case: Case) -> tuple[str, ...]:
    """The case in short: a direction, then each operation with what is not plain about it."""
    said = ["decrypt"] if case.decrypting else []
    for item in case.operations:
        data = f"{len(item.data)}" if not any(item.data) else item.data.hex()
        places = [
            f"{name} {place.edge.name.lower()}+{place.align}"
            for name, place in (("in", item.place), ("out", item.out_place))
            if not place.plain
        ]
        words = [item.kind.name.lower(), data, *places, *(["in place"] if item.in_place else [])]
        words += ["iv"] if item.flags.value & 4 else []
        said.append(" ".join(words))
    return tuple(said)


_NEEDS = {"wide_32": 4, "iv_kept_at_8": 8, "register_at_8": 8, "lanes_4": 4, "lanes_8": 8, "cbc_in_place": 2,
          "xts_in_place": 2, "xts_tail_15": 2, "ghash_5": 5, "ghash_6": 6, "ctr_decrypt_3": 3,
          "ctr_decrypt_in_place": 2, "mac_2": 3}  # fmt: skip
"""Blocks that a fault needs, where it is more than one."""


def is_small(plant: Sown, case: Case) -> bool:
    """Whether a case has one message, at most two blocks beyond the need, and one layout feature."""
    blocks = sum(-(-item.in_len // 16) for item in case.operations if item.kind.name == "UPDATE")
    layout = sum((not item.place.plain) + (not item.out_place.plain) + item.in_place for item in case.operations)
    return blocks <= _NEEDS.get(plant.name, 1) + 2 and layout <= 1 and case.num_messages <= 1
