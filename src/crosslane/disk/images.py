# SPDX-License-Identifier: Apache-2.0
"""LUKS images that qemu-img and cryptsetup make of an ext4 file system, kept beside the builds by what made them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosslane.buildcache import cache_folder, cached, digest, scratch
from crosslane.data import shown
from crosslane.disk.luks import Decrypt, read_header, volume_key
from crosslane.disk.spec import CipherSpec, parse_spec
from crosslane.disk.tools import run_tool, told, version_of_tool
from crosslane.draws import Draws
from crosslane.errors import BadInput, HarnessFault

__all__ = ["RECIPES", "Image", "Recipe", "image_of", "make_image", "make_raw", "read_back"]

_PASSPHRASE = b"every implementation agrees"
_UUID = "6f1c2a9e-5b0d-4a53-9f0e-2b7f6d1c8e40"
_TIME = "1000000000"
_FLAKY = "Unable to get accurate CPU usage"
"""What qemu-img says where its measurement of the key derivation fell between two ticks of the clock."""
_MOST_TRIES = 30
_RESERVED = 16 << 20
"""Bytes that cryptsetup gets for the header: it moves the data by half of it."""
_MOST_LEN = 16 << 20
_FILE_LENS = (1, 511, 4096, 65_537, 1 << 20, 3 << 20, 5 << 20)


@dataclass(frozen=True)
class Recipe:
    """One image to be made: ``qemu`` is the name of cipher and key in qemu-img, empty where cryptsetup makes it."""

    spec: CipherSpec
    key_bits: int
    mib: int
    qemu: str = ""
    sector_len: int = 512

    @property
    def name(self) -> str:
        """Says in an id which image it is."""
        maker = "qemu" if self.qemu else f"cryptsetup_{self.sector_len}"
        return f"{str(self.spec).replace(':', '_')}_{self.key_bits}_{self.mib}mib_{maker}"


def _qemu(cipher: str, bits: int, rest: str, mib: int) -> Recipe:
    spec = parse_spec(f"{cipher}-{rest}")
    return Recipe(spec, bits * (2 if spec.mode == "xts" else 1), mib, f"{cipher}-{bits}")


RECIPES = (
    _qemu("aes", 256, "cbc-essiv:sha256", 16),
    _qemu("aes", 256, "xts-plain64", 16),
    _qemu("serpent", 256, "cbc-essiv:sha256", 16),
    _qemu("serpent", 256, "xts-plain64", 16),
    _qemu("twofish", 256, "cbc-essiv:sha256", 16),
    _qemu("twofish", 256, "xts-plain64", 16),
    _qemu("cast5", 128, "cbc-plain64", 16),
    _qemu("aes", 128, "cbc-plain64", 1),
    _qemu("aes", 128, "cbc-plain", 1),
    _qemu("aes", 128, "xts-plain64", 1),
    _qemu("serpent", 128, "cbc-plain64", 1),
    _qemu("twofish", 128, "cbc-plain64", 1),
    _qemu("serpent", 128, "xts-plain64", 1),
    _qemu("twofish", 128, "xts-plain64", 1),
    Recipe(parse_spec("aes-xts-plain64"), 512, 1, sector_len=4096),
    Recipe(parse_spec("aes-cbc-essiv:sha256"), 256, 1),
)
"""qemu-img has no triple DES and no SM4 for LUKS, no essiv for CAST5, and fails for keys of 192 bits."""


@dataclass(frozen=True)
class Image:
    """An image whose content is known: files, and what lies where in them."""

    name: str
    spec: CipherSpec
    key: bytes
    sector_len: int
    raw_file: Path
    file: Path
    payload: int
    num_sectors: int

    @property
    def raw(self) -> NDArray[np.uint8]:
        """What was encrypted, of shape (n, sector_len)."""
        return self._mapped(self.raw_file, 0)

    @property
    def encrypted(self) -> NDArray[np.uint8]:
        """The payload, of the same shape."""
        return self._mapped(self.file, self.payload)

    def _mapped(self, path: Path, offset: int) -> NDArray[np.uint8]:
        return np.memmap(path, np.uint8, "r", offset, (self.num_sectors, self.sector_len))


def _folder() -> Path:
    return cache_folder().parent / "disks"


def make_raw(mib: int) -> Path:
    """An ext4 file system of so many MiB with files of fixed content; made once."""
    parts = ["raw 2", str(mib), version_of_tool("mkfs.ext4")]
    place = _folder() / digest(parts) / "raw.img"
    if not cached(place):
        with scratch(_folder()) as work:
            _make_file_system(work / "raw.img", work, mib)
            _put(work / "raw.img", place)
    return place


def _make_file_system(path: Path, work: Path, mib: int) -> None:
    tree = work / "tree"
    tree.mkdir()
    left = mib << 19
    for number, length in enumerate(length for length in _FILE_LENS):
        if length <= left:
            file = tree / f"file{number}"
            file.write_bytes(Draws("disk image", number).data(length).tobytes())
            os.utime(file, (int(_TIME), int(_TIME)))
            left -= length
    path.touch()
    os.truncate(path, mib << 20)
    said = run_tool(
        "mkfs.ext4",
        ["-q", "-F", "-b", "4096", "-U", _UUID, "-E", f"hash_seed={_UUID},root_owner=0:0", "-d", str(tree), str(path)],
        environment={"E2FSPROGS_FAKE_TIME": _TIME, "SOURCE_DATE_EPOCH": _TIME},
    )
    if said.status:
        raise told("mkfs.ext4", said, f"a file system of {mib} MiB")


def _put(made: Path, place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        made.replace(place)
    except OSError as error:
        raise BadInput(
            f"{shown(place)}: the image cannot be kept ({error.strerror}): free some space, or set XDG_CACHE_HOME to "
            "another folder"
        ) from None


def make_image(recipe: Recipe, decrypt: Decrypt) -> Image:
    """The image of a recipe, made once. Raises BadInput where the tool cannot make it here."""
    maker = "qemu-img" if recipe.qemu else "cryptsetup"
    raw = make_raw(recipe.mib)
    parts = ["luks 1", recipe.name, raw.parent.name, version_of_tool(maker)]
    place = _folder() / digest(parts) / "image.luks"
    if not cached(place):
        with scratch(_folder()) as work:
            (work / "passphrase").write_bytes(_PASSPHRASE)
            (_by_qemu if recipe.qemu else _by_cryptsetup)(recipe, raw, work)
            if recipe.qemu and read_back(work / "image.luks", work / "passphrase", work) != raw.read_bytes():
                raise HarnessFault(
                    f"qemu-img does not read back the image {recipe.name} that it wrote: install another"
                )
            _put(work / "image.luks", place)
    return image_of(place, _PASSPHRASE, raw, recipe.name, decrypt, most=recipe.mib << 20)


def _by_qemu(recipe: Recipe, raw: Path, work: Path) -> None:
    generator, _, hashed = recipe.spec.generator.partition(":")
    options = [f"cipher-alg={recipe.qemu}", f"cipher-mode={recipe.spec.mode}", f"ivgen-alg={generator}",
               "hash-alg=sha512", "iter-time=10", "key-secret=s"]  # fmt: skip
    options += [f"ivgen-hash-alg={hashed}"] if hashed else []
    made = work / "image.luks"
    for _ in range(_MOST_TRIES):
        said = run_tool(
            "qemu-img",
            ["convert", "-f", "raw", "-O", "luks", "--object", f"secret,id=s,file={work / 'passphrase'}", "-o",
             ",".join(options), str(raw), str(made)],
        )  # fmt: skip
        if said.status == 0:
            return
        if _FLAKY not in said.error:
            break
    raise told("qemu-img", said, f"a LUKS image of {recipe.spec}")


def _by_cryptsetup(recipe: Recipe, raw: Path, work: Path) -> None:
    made = work / "image.luks"
    made.write_bytes(raw.read_bytes())
    os.truncate(made, (recipe.mib << 20) + 2 * _RESERVED)
    said = run_tool(
        "cryptsetup",
        ["reencrypt", "--encrypt", "--type", "luks2", "--reduce-device-size", f"{_RESERVED >> 20}M", "--batch-mode",
         "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--cipher", str(recipe.spec), "--key-size",
         str(recipe.key_bits), "--sector-size", str(recipe.sector_len), "--key-file", str(work / "passphrase"),
         str(made)],
    )  # fmt: skip
    if said.status:
        raise told("cryptsetup", said, f"a LUKS2 image of {recipe.spec}")


def read_back(image: Path, passphrase: Path, work: Path) -> bytes:
    """What qemu-img reads of a LUKS1 image; raises BadInput where it does not."""
    out = work / "back.raw"
    said = run_tool(
        "qemu-img",
        ["convert", "--object", f"secret,id=s,file={passphrase}", "--image-opts",
         f"driver=luks,key-secret=s,file.driver=file,file.filename={image}", "-O", "raw", str(out)],
    )  # fmt: skip
    if said.status:
        raise told("qemu-img", said, f"the LUKS image {shown(image)}")
    return out.read_bytes()


def image_of(
    file: Path, passphrase: bytes, raw: Path | None, name: str, decrypt: Decrypt, *, most: int = _MOST_LEN
) -> Image:
    """An image by its header. Without ``raw`` qemu-img, of LUKS2 generic, says what is in it."""
    header = read_header(file)
    length = min(file.stat().st_size - header.payload, most)
    if length < header.sector_len or length % header.sector_len:
        raise BadInput(
            f"{shown(file)}: is cut short: {max(0, length)} bytes of payload are no whole sectors of "
            f"{header.sector_len}; copy it again"
        )
    if raw is not None and length != raw.stat().st_size:
        raise BadInput(f"{shown(file)}: is cut short: {length} bytes of payload, not {raw.stat().st_size}; remove it")
    key = volume_key(file, header, passphrase, decrypt)
    count = length // header.sector_len
    if raw is None:
        whole = np.memmap(file, np.uint8, "r", header.payload, (count, header.sector_len))
        raw = _content(file, passphrase, header.version, lambda: decrypt(header.spec, key, whole).tobytes())
        _check_whole(file, raw, file.stat().st_size - header.payload)
    return Image(name, header.spec, key, header.sector_len, raw, file, header.payload, count)


def _check_whole(file: Path, raw: Path, payload_len: int) -> None:
    """Raise BadInput where an ext file system in an image says that it is longer than the payload.

    Nothing else in an image says how long its payload was.
    """
    said = run_tool("dumpe2fs", ["-h", str(raw)])
    fields = dict(re.findall(r"^(Block count|Block size):\s+(\d+)$", said.out, re.MULTILINE))
    if len(fields) == 2:
        length = int(fields["Block count"]) * int(fields["Block size"])
        if length > payload_len:
            raise BadInput(
                f"{shown(file)}: is cut short: its file system has {length} bytes, and {payload_len} are there; copy "
                "it again"
            )


def _content(file: Path, passphrase: bytes, version: int, ours: Callable[[], bytes]) -> Path:
    with scratch(_folder()) as work:
        made = work / "raw.img"
        if version == 1:
            (work / "passphrase").write_bytes(passphrase)
            made.write_bytes(read_back(file.resolve(), work / "passphrase", work))
        else:
            made.write_bytes(ours())
        place = _folder() / digest(["content", made.read_bytes()]) / "raw.img"
        _put(made, place)
    return place
