"""Imports from listings of hashes: a module runs from the very bytes that were hashed, or not at all (GLI-19 2.3.2).

A `MeasuredFinder` uses its listings alone and reads no folder: a file in no listing cannot be imported. Source is
compiled from the compared bytes, and bytecode is not read. On Linux an extension module of a package is loaded from a
sealed copy in memory, so that later changes of its file do not reach the process. Data that are read through the
module's loader are compared, too.

Limits: extension modules of the standard library, and all of them on other systems than Linux, are compared and then
loaded by their path; the data of the standard library are not compared; a file opened by its path is read as it is.
"""

from __future__ import annotations

import _imp
import fcntl
import hashlib
import importlib.util
import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

_ENDINGS: Final = tuple(
    (f"{folder}{suffix}", bool(folder)) for folder in ("/__init__", "") for suffix in (*EXTENSION_SUFFIXES, ".py")
)
"""Endings of a module's file after its name, and whether it is a package then; in Python's order."""
_COPIES: Final[list[int]] = []
"""Descriptors of sealed copies. They stay open: the dynamic linker takes an equal path for the object it has loaded."""


@dataclass(frozen=True)
class Listing:
    """Files below one folder of the import path: path with slashes, relative to it -> the file, and its SHA-256 in hex.

    `whole`: data are listed as well, and extension modules need no file beside them.
    """

    files: Mapping[str, tuple[str, str]]
    whole: bool = True
    tops: frozenset[str] = field(init=False)
    folders: Mapping[str, str] = field(init=False)
    hashes: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        folders: dict[str, str] = {}
        for path, (file, _) in self.files.items():
            folder = os.path.dirname(path)  # noqa: PTH120 - thousands of them, at every start
            while folder and folder not in folders:
                folders[folder] = file[: len(file) - len(path) + len(folder)]
                folder = os.path.dirname(folder)  # noqa: PTH120
        object.__setattr__(self, "tops", frozenset(path.partition("/")[0].partition(".")[0] for path in self.files))
        object.__setattr__(self, "folders", folders)
        object.__setattr__(self, "hashes", dict(self.files.values()))

    def read(self, path: str) -> bytes:
        """The compared bytes of a file. OSError if it has changed, or is missing in a listing that is `whole`."""
        with open(path, "rb") as file:  # noqa: PTH123 - for every module
            content = file.read()
        sha256 = self.hashes.get(path)
        if sha256 is None and not self.whole:
            return content
        if sha256 != hashlib.sha256(content).hexdigest():
            raise OSError(0, "is not listed" if sha256 is None else "has changed since it was hashed", path)
        return content


class MeasuredFinder:
    """Finds modules in the first listing that has their top name; with `only`, just modules of these packages.

    `described` are the folders of distributions (`x-1.dist-info`), for `importlib.metadata`.
    """

    def __init__(self, listings: Sequence[Listing], only: Sequence[str] = (), described: Iterable[str] = ()) -> None:
        self._listings = listings
        self.only = only
        self._described = tuple(described)

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """The spec with a loader that compares; None for an unlisted module, ImportError if it is in `only`."""
        if self.only and not is_within(fullname, self.only):
            return None
        top = fullname.partition(".")[0]
        for listing in self._listings:
            if top in listing.tops:
                if (spec := _spec(listing, fullname)) is None and self.only:
                    raise ModuleNotFoundError(f"{fullname} is no source file of the software manifest", name=fullname)
                return spec
        return None

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """The listed distributions alone: some libraries import the entry points of all that they find."""
        from importlib.metadata import DistributionFinder, MetadataPathFinder  # noqa: PLC0415

        name = None if context is None else context.name
        sites = sorted({os.path.dirname(folder) for folder in self._described})  # noqa: PTH120
        wanted = DistributionFinder.Context(name=name, path=sites)
        for found in MetadataPathFinder.find_distributions(wanted):
            if str(getattr(found, "_path", "")) in self._described:
                yield found


def is_within(module: str, packages: Sequence[str]) -> bool:
    """Whether a module is one of these packages, or lies in one."""
    return any(module == name or module.startswith(f"{name}.") for name in packages)


def _spec(listing: Listing, fullname: str) -> ModuleSpec | None:
    place = fullname.replace(".", "/")
    for ending, is_package in _ENDINGS:
        if found := listing.files.get(place + ending):
            path, _ = found
            kind = MeasuredLoader if ending.endswith(".py") else MeasuredExtension
            locations = [listing.folders[place]] if is_package else None
            return importlib.util.spec_from_file_location(
                fullname, path, loader=kind(fullname, path, listing), submodule_search_locations=locations
            )
    if place not in listing.folders:
        return None
    spec = ModuleSpec(fullname, None, is_package=True)  # parts of several distributions, such as `google`
    spec.submodule_search_locations = [listing.folders[place]]
    return spec


class MeasuredLoader(SourceFileLoader):
    """Compiles one module from its compared source; reads its compared data."""

    def __init__(self, fullname: str, path: str, listing: Listing) -> None:
        super().__init__(fullname, path)
        self._listing = listing

    def get_data(self, path: str) -> bytes:
        return self._listing.read(path)

    def get_code(self, fullname: str) -> CodeType:
        """The code of the very bytes that were hashed; ImportError if they have changed since."""
        code: CodeType = self.source_to_code(_compared(self._listing, fullname, self.path), self.path)
        return code

    def get_resource_reader(self, _name: str) -> MeasuredData:  # type: ignore[override] # `files` is all it is asked
        return MeasuredData(self._listing, Path(self.path).parent)


class MeasuredExtension(ExtensionFileLoader):
    """Loads one extension module from a sealed copy of the compared bytes, where the system allows that."""

    def __init__(self, fullname: str, path: str, listing: Listing) -> None:
        super().__init__(fullname, path)
        self._listing = listing

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """ImportError if the file has changed, or cannot be copied."""
        content = _compared(self._listing, spec.name, self.path)
        if sys.platform != "linux" or not self._listing.whole:
            return super().create_module(spec)
        origin = f"/proc/self/fd/{_sealed(spec.name, content)}"
        module = _imp.create_dynamic(ModuleSpec(spec.name, self, origin=origin))
        module.__file__ = self.path
        return module


class MeasuredData:
    """Data beside a module, for `importlib.resources`: a path whose files are compared as they are read."""

    def __init__(self, listing: Listing, folder: Path) -> None:
        self._listing = listing
        self._folder = folder

    def files(self) -> Path:
        listing = self._listing

        class MeasuredPath(type(self._folder)):  # type: ignore[misc] # of this system's kind
            def open(  # type: ignore[no-untyped-def]
                self, mode: str = "r", _buffering: int = -1, encoding=None, errors=None, newline=None, **_: object
            ) -> IO[Any]:
                if set(mode) - set("rbt"):
                    raise PermissionError(1, "is measured, and read only", str(self))
                content = io.BytesIO(listing.read(str(self)))
                return content if "b" in mode else io.TextIOWrapper(content, encoding or "utf-8", errors, newline)

        return MeasuredPath(self._folder)


def _compared(listing: Listing, fullname: str, path: str) -> bytes:
    try:
        return listing.read(path)
    except OSError as error:
        raise ImportError(f"{fullname}: {error.strerror}", name=fullname, path=path) from None


def _sealed(fullname: str, content: bytes) -> int:
    """The descriptor of a copy that nobody can change. ImportError if the system gives none."""
    try:
        descriptor = os.memfd_create(fullname[-200:], os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        _COPIES.append(descriptor)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except OSError as error:
        raise ImportError(
            f"{fullname} cannot be loaded from sealed memory: {error.strerror} (memfd_create; vm.memfd_noexec below 2)",
            name=fullname,
        ) from None
    return descriptor
