# SPDX-License-Identifier: Apache-2.0
"""The facts the engine works with, as frozen data. Knows no cipher by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = [
    "Algorithm",
    "Backend",
    "Cell",
    "Cipher",
    "Domain",
    "Implementation",
    "Instance",
    "Isa",
    "Lane",
    "LibraryBuild",
    "Mode",
    "Package",
    "Provider",
    "Registry",
    "Sysroot",
]

Isa = Literal["any", "x86_64", "aarch64"]


@dataclass(frozen=True)
class Cipher:
    """A keyed block primitive (``impls/ciphers/<name>/cipher.toml``). Lengths in bytes.

    ``weak_keys`` are parts of keys that ``policies`` refuse or might, in hexadecimal digits; ``ignored_bits`` those of
    each byte of a key that play no part.
    """

    name: str
    title: str
    standard: str
    block_len: int
    key_lens: tuple[int, ...]
    policies: tuple[str, ...]
    folder: Path
    weak_keys: tuple[str, ...] = ()
    ignored_bits: int = 0


@dataclass(frozen=True)
class Mode:
    """A construction over a cipher (``impls/modes/<name>/mode.toml``).

    ``split`` says where a message may be cut into updates: ``byte``, ``block`` or ``none``. ``serial`` says that each
    block waits for the one before in every direction, so that a mode composed over a leaf calls it one block at a time.
    ``partial`` says what happens to a length that is no multiple of the block: ``refused``, ``anywhere`` or
    ``stealing``. ``iv`` is how an iv is steered: ``none``, ``random``, ``counter``, ``index``, ``tweak``, ``nonce`` or
    ``hashed`` (GCM's, whose J0 is steered); ``iv_lens`` its lengths in bytes, where 0 stands for one block. ``iv_out``
    is ``none``, ``next`` (compared after every update) or ``next_whole`` (only while no partial block was processed).
    ``key_extra_len`` is what the mode's key has beyond the cipher's own (16 for lrw), ``num_keys`` how many cipher keys
    it takes. ``block_lens`` are the block lengths that the mode allows.
    """

    name: str
    title: str
    standard: str
    split: Literal["byte", "block", "none"]
    serial: bool
    partial: Literal["refused", "anywhere", "stealing"]
    min_len_blocks: int
    iv: Literal["none", "random", "counter", "index", "tweak", "nonce", "hashed"]
    iv_lens: tuple[int, ...]
    iv_out: Literal["none", "next", "next_whole"]
    directions: tuple[str, ...]
    aad: bool
    tag_lens: tuple[int, ...]
    num_keys: int
    key_extra_len: int
    block_lens: tuple[int, ...]
    folder: Path


@dataclass(frozen=True)
class Implementation:
    """One body of code for a cipher (``impls/ciphers/<cipher>/<folder>/impl.toml``).

    ``symbol`` is cipher and folder (``sm4_x86_64_aesni_avx``): the getter's name. ``fused`` are modes with code of
    their own, ``paths`` the declared code paths (``ctr:wrap`` where only one mode can take it), ``ways`` the widest
    path in blocks. A higher ``priority`` is the default of two that can run. ``origin`` is ``own`` or the absolute
    folder given with ``--impls``. ``wipes``: it claims that a call leaves no secret in registers and on the stack.
    """

    cipher: str
    driver: str
    symbol: str
    isa: Isa
    features: tuple[str, ...]
    priority: int
    ways: int
    sources: tuple[Path, ...]
    fused: tuple[str, ...]
    paths: tuple[str, ...]
    constant_time: bool
    description: str
    folder: Path
    origin: str
    wipes: bool = False

    @property
    def has_assembly(self) -> bool:
        """Whether a source of it is assembly, which is built for each calling convention."""
        return any(source.suffix == ".S" for source in self.sources)

    @property
    def is_generic(self) -> bool:
        """Whether this is the implementation that all others of the cipher are judged against."""
        return self.folder.name == "generic" and self.origin == "own"


@dataclass(frozen=True)
class Domain:
    """What a provider computes of one algorithm, and how much of it shows through the library's public interface.

    Lengths in bytes. ``key_lens`` are of one cipher key, ``iv_lens`` and ``tag_lens`` what is taken of the mode's.
    ``split`` is where a message may be cut into updates, ``min_len`` the least length of a message, ``max_len`` the
    greatest (0: none), ``max_aad_len`` that of its associated data; ``empty`` whether a message may have no data.
    ``equal_keys``: whether a mode with two keys takes them equal. ``policies`` can be asked for, ``always_policies``
    are in force whether asked for or not. ``refusals`` are the kinds of illegal lengths that the library refuses
    itself, where and as the contract says: ``key`` ``iv`` ``tag`` ``data``; the others lie outside the domain.
    ``observes_iv``: the running iv can be read.
    ``releases_plaintext``: plaintext comes out before the tag is compared. ``clone``: a context can be copied within a
    message. ``optional``: not every build of the library has the algorithm, so that one without it may decline.
    """

    mode: str
    cipher: str
    directions: tuple[str, ...]
    key_lens: tuple[int, ...]
    iv_lens: tuple[int, ...]
    tag_lens: tuple[int, ...]
    split: Literal["byte", "block", "none"]
    min_len: int
    max_len: int
    max_aad_len: int
    empty: bool
    equal_keys: bool
    policies: tuple[str, ...]
    always_policies: tuple[str, ...]
    refusals: tuple[str, ...]
    observes_iv: bool
    releases_plaintext: bool
    clone: bool
    reinit: bool
    in_place: bool
    optional: bool


@dataclass(frozen=True)
class Backend:
    """One of a library's internal code paths, and the switch that leads there (a table ``[backend.NAME]``).

    It belongs to architectures. ``environment`` are the variables (``NAME=VALUE``) that its processes have; ``cpu``
    is the emulator's CPU model whose lanes it lives in, empty for those in which the library lives anyhow. ``gate``:
    whether ``check`` runs it unasked.
    """

    name: str
    arches: tuple[str, ...]
    what: str
    environment: tuple[str, ...] = ()
    cpu: str = ""
    gate: bool = False


@dataclass(frozen=True)
class Provider:
    """An external library behind an adapter (``impls/providers/<name>/provider.toml``).

    ``packages`` are Debian's, ``headers`` public ones (``openssl/evp.h``), ``libraries`` names for the linker
    (``crypto``), ``includes`` folders of headers below the compiler's own (``botan-2``). ``others`` are the same
    library as other releases name it, taken where the first is not installed. ``domains`` has one entry for each
    algorithm, sorted by mode and cipher. ``contexts``: whether those
    of the library come from the C library's allocator (``heap``), where they can be watched, or are its ``own`` affair.
    ``wipes``: its documentation says that a context that is freed holds no key. ``environment`` are the variables
    (``NAME=VALUE``) that its processes have. A library that loads modules of its own is told by the variable
    ``modules_variable`` in which of ``modules_folders``, below its folder, they are.
    ``ship``: whether what is built of the adapter may be distributed under this project's licence.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    headers: tuple[str, ...]
    libraries: tuple[str, ...]
    sources: tuple[Path, ...]
    domains: tuple[Domain, ...]
    folder: Path
    contexts: Literal["heap", "own"] = "heap"
    wipes: bool = False
    environment: tuple[str, ...] = ()
    backends: tuple[Backend, ...] = ()
    modules_variable: str = ""
    modules_folders: tuple[str, ...] = ()
    ship: bool = True
    includes: tuple[str, ...] = ()
    others: tuple[Provider, ...] = ()

    @property
    def has_cxx(self) -> bool:
        """Whether the adapter is written in C++, for a library that has no other interface."""
        return any(source.suffix == ".cc" for source in self.sources)

    @property
    def releases(self) -> tuple[Provider, ...]:
        """The library under each of its names, in the order in which they are looked for."""
        return (self, *self.others)

    def domain(self, mode: str, cipher: str) -> Domain | None:
        """The domain of an algorithm; ``None`` where the library does not have it."""
        return next((item for item in self.domains if (item.mode, item.cipher) == (mode, cipher)), None)


@dataclass(frozen=True)
class Package:
    """A Debian package as it was fetched: ``sha256`` of its file, in hexadecimal digits.

    ``libraries`` are the names of the shared libraries in it (``libgcrypt.so.20.4.1``).
    """

    name: str
    version: str
    sha256: str
    libraries: tuple[str, ...]


@dataclass(frozen=True)
class Sysroot:
    """Debian packages of one release and architecture, unpacked by ``crosslane providers fetch``.

    ``root`` is the folder that stands for ``/``, ``providers`` are those whose packages were asked for, ``digest`` is
    that of all packages with their versions.
    """

    suite: str
    arch: str
    root: Path
    providers: tuple[str, ...]
    packages: tuple[Package, ...]
    digest: str

    @property
    def lane(self) -> str:
        """The name of the lane in which its libraries run."""
        return f"{self.arch}_{self.suite.replace('-', '_')}"


@dataclass(frozen=True)
class LibraryBuild:
    """Somebody's own build of a provider's library (``--provider NAME=PROVIDER:FOLDER[:INCLUDE]``).

    ``folder`` holds the shared libraries, ``include`` the headers; without it they are the system's.
    """

    name: str
    provider: str
    folder: Path
    include: Path | None = None

    @property
    def text(self) -> str:
        """What names it on the command line."""
        return f"{self.name}={self.provider}:{self.folder}" + (f":{self.include}" if self.include else "")


@dataclass(frozen=True)
class Lane:
    """One execution configuration (a table of ``ci/lanes.toml``).

    ``runner`` is ``native`` or ``qemu``; ``cpu`` the qemu model (empty natively); ``hosts`` the host architectures on
    which the lane exists; ``hides`` are CPU features masked from dispatch; ``gate`` whether ``check`` runs it by
    default; ``full`` whether it gets the full grids on this host. ``opt`` is the compiler's own spelling (``-O2``);
    ``sanitizer`` what gcc builds into the code under test: ``none``, ``address`` or ``undefined``. ``lto``: the
    sources of each subject, and the modes, are optimised across files at link time. ``protector``: the code under test
    has stack protectors. ``floor`` is the instruction set that portable code may use (``x86-64-v3``; empty: the
    architecture's first). ``abi`` is the calling convention of assembly: the
    ``system``'s, or ``win64`` for the Windows x64 one. ``suite`` is the release of Debian whose libraries run there,
    out of a sysroot; no implementation has cells in such a lane.
    """

    name: str
    arch: str
    runner: Literal["native", "qemu"]
    cpu: str
    compiler: str
    opt: str
    sanitizer: Literal["none", "address", "undefined"]
    hosts: tuple[str, ...]
    hides: tuple[str, ...]
    gate: bool
    full: bool
    comment: str
    lto: bool = False
    protector: bool = False
    floor: str = ""
    abi: Literal["system", "win64"] = "system"
    suite: str = ""

    def takes(self, item: Implementation) -> bool:
        """Whether the lane has cells for an implementation: of its architecture, and where it is about a calling
        convention, with assembly that can keep it.
        """
        return not self.suite and item.isa in ("any", self.arch) and (self.abi == "system" or item.has_assembly)

    @property
    def sanitized(self) -> bool:
        """Whether a sanitizer watches the code under test."""
        return self.sanitizer != "none"

    @property
    def build(self) -> tuple[str | bool, ...]:
        """All that decides its programs: lanes that are equal in this share them."""
        return (self.arch, self.compiler, self.opt, self.sanitizer, self.lto, self.protector, self.floor, self.abi)

    @property
    def usual(self) -> bool:
        """Whether it is built as most users build: gcc -O2 and nothing more."""
        return self.build == (self.arch, "gcc", "-O2", "none", False, False, "", "system")


@dataclass(frozen=True)
class Instance:
    """One library to be judged: a provider, where its library comes from, and where it runs.

    ``name`` stands in cells where a driver does. The library is that of ``sysroot`` or of ``build``; where both are
    None, the system's. ``backend`` is a code path that the library is made to take, or None for its own choice.
    """

    provider: Provider
    name: str
    lane: Lane
    sysroot: Sysroot | None = None
    build: LibraryBuild | None = None
    backend: Backend | None = None

    @property
    def of_system(self) -> bool:
        """Whether it is the library that the system has installed."""
        return self.sysroot is None and self.build is None

    def cell(self, mode: str, cipher: str) -> Cell:
        """Its cell for an algorithm."""
        return Cell(Algorithm(mode, cipher), self.name, self.lane.name, self.backend.name if self.backend else "")


@dataclass(frozen=True, order=True)
class Algorithm:
    """A mode of a cipher, printed as the kernel does: ``ctr(sm4)``."""

    mode: str
    cipher: str

    def __str__(self) -> str:
        return f"{self.mode}({self.cipher})"


@dataclass(frozen=True)
class Cell:
    """Algorithm x implementation x lane: the unit of "did it run". ``backend`` is a provider's code path or empty."""

    algorithm: Algorithm
    driver: str
    lane: str
    backend: str = ""

    def __str__(self) -> str:
        subject = f"{self.driver}:{self.backend}" if self.backend else self.driver
        return f"{self.algorithm}/{subject}@{self.lane}"


@dataclass(frozen=True)
class Registry:
    """All that was discovered under ``impls/`` and in ``ci/lanes.toml``, sorted by name.

    ``root`` is the folder that holds ``impls`` and ``ci`` (see ``data.data_root``). ``sysroots`` are what was fetched,
    each with a lane of its own among ``lanes``; ``builds`` what the command line names.
    """

    ciphers: tuple[Cipher, ...]
    modes: tuple[Mode, ...]
    implementations: tuple[Implementation, ...]
    lanes: tuple[Lane, ...]
    root: Path = Path()
    providers: tuple[Provider, ...] = ()
    sysroots: tuple[Sysroot, ...] = ()
    builds: tuple[LibraryBuild, ...] = ()
