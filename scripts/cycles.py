"""Finds cycles between the source files of each Rust crate below native/: files that use each other.

    python3 scripts/cycles.py [folder]

Prints each cycle with the names that tie its files together; the exit status is 1 if there is one.

A file uses another if a path in it (`crate::a::B`, `super::B`, `child::B`, also within `use`) leads to an item of that
file. Re-exports are followed to the file that defines the item. Two things do not count: code for tests, and paths that
start with `$crate`, because they belong to the crate that uses the macro.

One type may have its methods in several files of a folder: if a file has an `impl` for a type of its folder's mod.rs,
its uses of that mod.rs do not count either. Its uses of its neighbours do.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

Module = tuple[str, ...]

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|r#+".*?"#+|b?c?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.DOTALL)
FOR_TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\)\]\s*")
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w$:])([a-z_]\w*(?:::\w+)+)")
CHILD = re.compile(r"\bmod\s+(\w+)\s*;")
TYPE = re.compile(r"\b(?:struct|enum|union|type)\s+(\w+)")
IMPL = re.compile(r"\bimpl\b(?:<[^{;]*?>(?=\s+\w))?([^{;]*)\{")


def code(source: str) -> str:
    """The source without comments, texts and tests."""
    text = COMMENT_OR_TEXT.sub(" ", source)
    while found := FOR_TESTS.search(text):
        end = re.compile(r"[;{]").search(text, found.end())
        stop = len(text) if end is None else end.end()
        if end is not None and end.group() == "{":
            depth = 1
            while depth and stop < len(text):
                depth += {"{": 1, "}": -1}.get(text[stop], 0)
                stop += 1
        text = text[: found.start()] + text[stop:]
    return text


def leaves(tree: str, prefix: Module = ()) -> list[tuple[Module, str]]:
    """The paths of a `use` with the name that each gets: `a::{b, c as d}` is a::b and a::c."""
    found, depth, start = [], 0, 0
    for i, letter in enumerate(tree + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter != "," or depth:
            continue
        part = tree[start:i].strip()
        start = i + 1
        head, brace, rest = part.partition("{")
        name, _, alias = head.partition(" as ")
        path = prefix + tuple(word.strip() for word in name.split("::") if word.strip())
        if brace:
            found += leaves(rest.rstrip().removesuffix("}"), path)
        elif part:
            path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
            found.append((path, alias.strip() or path[-1]))
    return found


def implementing(head: str) -> str:
    """The type of an `impl`: B for `a::B<T>` and for `Trait for B`."""
    found = re.search(r"(?:\w+::)*(\w+)", re.split(r"\sfor\s", head)[-1])
    return found[1] if found else ""


class File:
    def __init__(self, place: Path, module: Module) -> None:
        self.place, self.module = place, module
        text = code(place.read_text())
        self.children = set(CHILD.findall(text))
        self.types = set(TYPE.findall(text))
        self.implements = {implementing(head) for head in IMPL.findall(text)} - self.types
        uses = [(bool(public), leaf) for public, tree in USE.findall(text) for leaf in leaves(tree)]
        self.reexports = {name: path for public, (path, name) in uses if public}
        rest = USE.sub(" ", text)
        self.paths = [path for public, (path, name) in uses if not public or re.search(rf"\b{name}\b", rest)]
        self.paths += [tuple(path.split("::")) for path in PATH.findall(rest)]


class Crate:
    def __init__(self, source: Path) -> None:
        self.files: dict[Module, File] = {}
        self.add(source / "lib.rs", ())

    def add(self, place: Path, module: Module) -> None:
        file = self.files[module] = File(place, module)
        folder = place.parent if place.name in ("lib.rs", "mod.rs") else place.with_suffix("")
        for child in file.children:
            found = [path for path in (folder / f"{child}.rs", folder / child / "mod.rs") if path.exists()]
            if found:
                self.add(found[0], (*module, child))

    def find(
        self, path: Module, here: Module, seen: frozenset[tuple[Module, str]] = frozenset()
    ) -> tuple[Module, str] | None:
        """The file and the item that a path leads to. None: they are outside the crate, or local."""
        module: Module = ()
        if path[0] == "crate":
            path = path[1:]
        elif path[0] in ("self", "super"):
            module = here
            while path and path[0] in ("self", "super"):
                module, path = (module[:-1] if path[0] == "super" else module), path[1:]
        elif path[0] in self.files[here].children:
            module = here
        else:
            return None
        while path and (*module, path[0]) in self.files:
            module, path = (*module, path[0]), path[1:]
        name = path[0] if path else ""
        further = self.files[module].reexports.get(name)
        if further is None or (module, name) in seen:
            return module, name
        return self.find(further, module, seen | {(module, name)}) or (module, name)

    def edges(self) -> dict[Module, dict[Module, set[str]]]:
        edges: dict[Module, dict[Module, set[str]]] = defaultdict(lambda: defaultdict(set))
        for module, file in self.files.items():
            parent = self.files[module[:-1]] if len(module) > 1 else None
            above = module[:-1] if parent is not None and file.implements & parent.types else None
            for path in file.paths:
                target = self.find(path, module)
                if target is not None and target[0] not in (module, above):
                    edges[module][target[0]].add(target[1] or "::".join(target[0]))
        return edges


def cycles(edges: dict[Module, dict[Module, set[str]]]) -> list[set[Module]]:
    """Groups of files that all reach each other."""

    def reached(start: Module) -> set[Module]:
        seen: set[Module] = set()
        todo = [start]
        while todo:
            for target in edges.get(todo.pop(), {}):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    reach = {module: reached(module) for module in list(edges)}
    groups: list[set[Module]] = []
    for module in sorted(reach):
        if module in reach[module] and not any(module in group for group in groups):
            groups.append({other for other in reach if other in reach[module] and module in reach[other]})
    return groups


def main() -> int:
    native = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "native"
    count = 0
    for library in sorted(native.glob("*/src/lib.rs")):
        crate = Crate(library.parent)
        edges = crate.edges()
        for group in cycles(edges):
            count += 1
            print(f"a cycle in {library.parent.relative_to(native)}:")
            for module in sorted(group):
                for target, names in sorted(edges[module].items()):
                    if target in group:
                        one, other = (crate.files[m].place.relative_to(library.parent) for m in (module, target))
                        print(f"  {one} uses {other}: {', '.join(sorted(names))}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
