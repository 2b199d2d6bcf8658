"""The compilers and interpreters of this machine: where they are, and what their jail grants them.

A program is built with one of a few fixed commands, and what the tools may read and start is listed
here: their own folders, and nothing of the user's. To add a language, write a class like `_Rust`
and add it to `_FINDERS`.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ....core.errors import UsageError
from ...sandbox.isolation.landlock import readable_paths
from ...sandbox.tool_worker import Grants, Step

_SECONDS = 60.0  # for a question to a tool
_GO_SECONDS = 1200.0  # for Go, which compiles its library when it is asked for the first time
_OLDEST_TYPESCRIPT = (5, 6)  # older ones cannot leave types unchecked
_VERSION = re.compile(r"\d+(?:\.\d+)*[-+.\w]*")


@dataclass(frozen=True)
class BuildPlan:
    """How one program is built and run.

    Attributes:
        source: the name of its file.
        build: what builds it, in order.
        run: what runs it.
        mode: "program", or "command" if it may start processes.
        files: texts of further files that building needs, by name.
    """

    source: str
    build: tuple[Step, ...]
    run: Step
    mode: str = "program"
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Toolchain:
    """The tools of one language on this machine.

    Attributes:
        language: its name in a check.
        tool: the path of its main tool.
        version: the version of that tool.
        plan: how a program is built and run, with so many megabytes of memory.
        grants: what building and running may use.
        tools: the tools by the names under which a check may call them.
    """

    language: str
    tool: str
    version: str
    plan: Callable[[str, int], BuildPlan]
    grants: Grants
    tools: Mapping[str, str] = field(default_factory=dict)


class NotInstalled(UsageError):
    """This machine lacks the tools of a language."""


LANGUAGES = ("c", "cpp", "go", "java", "javascript", "python", "rust", "typescript")


@functools.cache
def _found(language: str, path: str) -> Toolchain | str:
    """The toolchain of a language, or why there is none; `path` is where programs are found."""
    try:
        return _FINDERS[language]()
    except NotInstalled as exc:
        return str(exc)


def toolchain(language: str) -> Toolchain:
    """The tools of a language; a UsageError if this machine lacks them."""
    found = _found(language, os.environ.get("PATH", ""))
    if isinstance(found, str):
        raise NotInstalled(found)
    return found


def installed() -> dict[str, Toolchain | str]:
    """The toolchain of each language, or why there is none."""
    return {name: _found(name, os.environ.get("PATH", "")) for name in LANGUAGES}


def _on_path(language: str, name: str, package: str) -> str:
    """The real path of a tool."""
    path = shutil.which(name)
    if path is None:
        raise NotInstalled(f"no {name} for programs in {language}: install {package}")
    return os.path.realpath(path)


def _asked(*argv: str, seconds: float = _SECONDS, **variables: str) -> str:
    """What a tool prints, without spaces around it; "" if it fails."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=os.environ | variables,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else (done.stdout or done.stderr).strip()


def _version(*argv: str) -> str:
    found = _VERSION.search(_asked(*argv).partition("\n")[0])
    return found[0] if found else "unknown"


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    >>> _numbers("5.10.1-beta")
    (5, 10, 1)
    """
    return tuple(map(int, re.findall(r"\d+", version.partition("-")[0])))


def _real(paths: list[str]) -> tuple[str, ...]:
    """The paths that exist, without links."""
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.exists(path)))


def _gnu(language: str, name: str, compiler: str) -> tuple[str, Grants]:
    """GNU's compiler, and what it needs: its own folder, assembler, linker and headers."""
    tool = _on_path(language, name, {"gcc": "gcc", "g++": "g++"}[name])
    programs = [_asked(tool, f"-print-prog-name={part}") for part in (compiler, "collect2")]
    helpers = [_asked(tool, f"-print-prog-name={part}") for part in ("as", "ld")]
    helpers = [shutil.which(path) or path for path in helpers if path]
    own = [os.path.dirname(path) for path in programs if os.path.isabs(path)]
    library = _asked(tool, "-print-file-name=crtbegin.o")
    own += [os.path.dirname(library)] if os.path.isabs(library) else []
    if not own:
        raise NotInstalled(f"no compiler for programs in {language}: install {name}")
    readable = _real(["/usr/include", "/usr/local/include"])
    return tool, Grants(readable, _real([tool, *own, *helpers]))


def _compiled(
    tool: str, grants: Grants, source: str, *options: str
) -> Callable[[str, int], BuildPlan]:
    build = Step((tool, *options), grants)

    def plan(text: str, memory_mb: int) -> BuildPlan:
        return BuildPlan(source, (build,), Step(("{built}/main",), starts=("main",)))

    return plan


def _c() -> Toolchain:
    tool, grants = _gnu("c", "gcc", "cc1")
    options = ("-O2", "-std=gnu17", "-w", "-o", "main", "main.c", "-lm", "-pthread")
    plan = _compiled(tool, grants, "main.c", *options)
    named = {"gcc": tool, "cc": tool}
    return Toolchain("c", tool, _version(tool, "-dumpfullversion"), plan, grants, named)


def _cpp() -> Toolchain:
    tool, grants = _gnu("cpp", "g++", "cc1plus")
    options = ("-O2", "-std=gnu++20", "-w", "-o", "main", "main.cpp", "-pthread")
    plan = _compiled(tool, grants, "main.cpp", *options)
    named = {"g++": tool, "c++": tool}
    return Toolchain("cpp", tool, _version(tool, "-dumpfullversion"), plan, grants, named)


def user_home() -> str:
    """The home of the user in the system's list; in a container, a user may be in no list."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def _rust() -> Toolchain:
    proxy = _on_path("rust", "rustc", "rustc")
    home = user_home()  # rustup looks there, whatever HOME says
    root = _asked("rustc", "--print", "sysroot") or _asked("rustc", "--print", "sysroot", HOME=home)
    tool = os.path.join(root, "bin", "rustc")  # the one on the path may be rustup's, which chooses
    if not os.path.exists(tool):
        raise NotInstalled(f"no rustc for programs in rust: {proxy} has no toolchain")
    linker, gnu = _gnu("rust", "gcc", "cc1")
    own = [tool, os.path.join(root, "bin"), os.path.join(root, "lib", "rustlib"), *gnu.executable]
    grants = Grants(_real([os.path.join(root, "lib")]), _real(own))
    options = ["--edition", "2021", "-O", "--cap-lints", "allow", "-C", f"linker={linker}"]
    plan = _compiled(tool, grants, "main.rs", *options, "-o", "main", "main.rs")
    named = {"rustc": tool}
    cargo = os.path.join(root, "bin", "cargo")
    if os.path.exists(cargo):
        named["cargo"] = cargo
    return Toolchain("rust", tool, _version(tool, "--version"), plan, grants, named)


_PUBLIC_CLASS = re.compile(
    r"\bpublic\s+(?:(?:final|abstract|strictfp|sealed)\s+)*(?:class|record|enum|interface)\s+(\w+)"
)
_PACKAGE = re.compile(r"^[ \t]*package\s+([\w.]+)\s*;", re.M)
_SILENT = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*',
    re.DOTALL,
)
_NESTING = re.compile(
    r"(?<![\w.])(?:class|record|enum|interface)\s+(?P<name>\w+)|(?P<brace>[{}])"
    r"|\bvoid\s+(?P<main>main)\s*\(\s*(?:final\s+)?String\b"
)
_SMALL_MACHINE = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:ActiveProcessorCount=2")


def _java() -> Toolchain:
    compiler = _on_path("java", "javac", "a Java development kit")
    home = Path(compiler).parents[1]
    tool = str(home / "bin" / "java")
    if not os.path.exists(tool):
        raise NotInstalled("no java for programs in java: install a Java development kit")
    files = [path for folder in ("conf", "lib") for path in sorted((home / folder).rglob("*"))]
    linked = [
        str(path) for path in files if path.is_symlink()
    ]  # as to Debian's /etc/java-17-openjdk
    readable = _real([str(home / "conf"), *linked])
    grants = Grants(readable, _real([str(home / "bin"), str(home / "lib"), str(home / "release")]))
    machine = [f"-J{option}" for option in (*_SMALL_MACHINE, "-XX:TieredStopAtLevel=1", "-Xmx1g")]

    def plan(text: str, memory_mb: int) -> BuildPlan:
        bare = _SILENT.sub(" ", text)
        public = _PUBLIC_CLASS.search(bare)
        name = public[1] if public else "Main"
        package = _PACKAGE.search(bare)
        started = _main_class(bare) or name
        if package:
            started = f"{package[1]}.{started}"
        options = ("-proc:none", "-implicit:none", "-nowarn", "-encoding", "UTF-8")
        build = (compiler, *machine, *options, "-d", "{built}", f"{name}.java")
        heap = f"-Xmx{max(16, memory_mb * 3 // 4)}m"
        run = (tool, *_SMALL_MACHINE, "-Xss64m", heap, "-Xshare:auto", "-cp", "{built}", started)
        return BuildPlan(f"{name}.java", (Step(build, grants),), Step(run, grants))

    version = _version(compiler, "-version")
    return Toolchain("java", tool, version, plan, grants, {"java": tool, "javac": compiler})


def _main_class(text: str) -> str:
    """The class that has the method `main`; "" if there is none. No comments or texts are in it.

    >>> _main_class("class A { static class B { } public static void main(String[] a) { } }")
    'A'
    """
    inside: list[str] = []  # the classes around, and "" for other braces
    declared = ""
    for part in _NESTING.finditer(text):
        if part["name"]:
            declared = part["name"]
        elif part["main"]:
            return "$".join(name for name in inside if name)
        elif part["brace"] == "{":
            inside.append(declared)
            declared = ""
        elif inside:
            inside.pop()
    return ""


_NODE = {"OPENSSL_CONF": "/dev/null"}  # it stops if it may not read the system's
_MODULE = re.compile(
    r"^[ \t]*(?:import\s+(?:[\w{*]|['\"])|export\s+(?:default|const|function|\{))", re.M
)


def _node_step(tool: str, grants: Grants, memory_mb: int, *arguments: str) -> Step:
    heap = f"--max-old-space-size={max(16, memory_mb * 3 // 4)}"
    return Step((tool, heap, "--stack-size=65000", *arguments), grants, _NODE)


def _javascript() -> Toolchain:
    tool = _on_path("javascript", "node", "nodejs")
    grants = Grants((), (tool,))

    def plan(text: str, memory_mb: int) -> BuildPlan:
        is_module = _MODULE.search(text) is not None and "require(" not in text
        name = "main.mjs" if is_module else "main.js"
        checking = Step((tool, "--check", name), grants, _NODE)
        return BuildPlan(
            name, (checking,), _node_step(tool, grants, memory_mb, f"{{built}}/{name}")
        )

    return Toolchain("javascript", tool, _version(tool, "--version"), plan, grants, {"node": tool})


def _typescript() -> Toolchain:
    """TypeScript's compiler, which only erases the types: it is told not to check them."""
    node = _on_path("typescript", "node", "nodejs")
    script = _on_path("typescript", "tsc", "typescript with npm")
    version = _version(node, script, "--version")
    if _numbers(version) < _OLDEST_TYPESCRIPT:
        raise NotInstalled(
            f"typescript {version} is too old for programs in typescript: "
            "install version 5.6 or newer with npm"
        )
    package = Path(script).parents[1]
    beside = package.parent / "@typescript"  # the compiler itself, from version 7 on
    grants = Grants((), _real([node, str(package), str(beside)]))
    options = ["--noCheck", "--noResolve", "--types", "", "--target", "es2022"]
    options += ("--module", "commonjs", "--outDir", "{built}", "main.ts")
    build = Step((node, script, *options), grants, _NODE)
    running = Grants((), (node,))

    def plan(text: str, memory_mb: int) -> BuildPlan:
        return BuildPlan(
            "main.ts", (build,), _node_step(node, running, memory_mb, "{built}/main.js")
        )

    return Toolchain("typescript", script, version, plan, grants, {"tsc": script})


_GO = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}
_GO_PACKAGES = "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}"


def _go() -> Toolchain:
    """Go's compiler and linker, which are told where each compiled package of the library is.

    Up to 1.19 Go comes with these files. Later versions compile the library for the user's build
    cache when they are first asked for it, outside the jail.
    """
    go = _on_path("go", "go", "golang-go")
    root = _asked(go, "env", "GOROOT")
    tools = _asked(go, "env", "GOTOOLDIR")
    compiler = os.path.join(tools, "compile")
    linker = os.path.join(tools, "link")
    if not os.path.exists(compiler) or not os.path.exists(linker):
        raise NotInstalled(f"no compiler for programs in go: {go} names none")
    listing = (go, "list", "-export", "-f", _GO_PACKAGES, "std")
    packages = _asked(*listing, seconds=_GO_SECONDS, **_GO)
    archives = [line.partition("=")[2] for line in packages.splitlines()]
    if not archives:
        raise NotInstalled(f"no library for programs in go: {' '.join(listing[:3])} std fails")
    grants = Grants(_real([root, *archives]), _real([tools]))
    variables = {"GOROOT": root}
    named = ("-importcfg", "packages", "-o")
    compiling = (compiler, "-p", "main", "-complete", *named, "main.o", "main.go")
    linking = (linker, "-s", "-w", *named, "main", "main.o")
    build = (Step(compiling, grants, variables), Step(linking, grants, variables))

    def plan(text: str, memory_mb: int) -> BuildPlan:
        lost = [path for path in archives if not os.path.exists(path)]
        if lost:
            raise NotInstalled("the library for programs in go was removed: start grv again")
        run = Step(("{built}/main",), starts=("main",))
        return BuildPlan("main.go", build, run, files={"packages": packages})

    return Toolchain("go", go, _version(go, "version"), plan, grants, {"go": go})


_COMPILES = "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec')"


def _python() -> Toolchain:
    """The interpreter that runs grv, with its packages."""
    tool = sys.executable
    settings = os.path.join(os.path.dirname(os.path.dirname(tool)), "pyvenv.cfg")
    real = os.path.realpath(tool)
    grants = Grants(_real([*readable_paths(), settings]), (real,))
    variables = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}

    def plan(text: str, memory_mb: int) -> BuildPlan:
        compiling = Step((tool, "-s", "-P", "-c", _COMPILES, "main.py"), grants, variables)
        running = Step((tool, "-s", "{built}/main.py"), grants, variables)
        return BuildPlan("main.py", (compiling,), running)

    version = ".".join(map(str, sys.version_info[:3]))
    return Toolchain("python", tool, version, plan, grants, {"python": tool, "python3": tool})


_FINDERS: Mapping[str, Callable[[], Toolchain]] = {
    "c": _c,
    "cpp": _cpp,
    "go": _go,
    "java": _java,
    "javascript": _javascript,
    "python": _python,
    "rust": _rust,
    "typescript": _typescript,
}

# Where programs of the system are, which an own command may start.
_SYSTEM = ("/usr/bin", "/bin", "/usr/local/bin", "/usr/libexec", "/usr/lib", "/usr/local/lib")
_SYSTEM_DATA = ("/usr/share", "/usr/include", "/usr/local/include", "/usr/local/share")


def own_step(argv: tuple[str, ...], readable: tuple[str, ...] = ()) -> Step:
    """A command of a check: what it starts, and what that may use.

    The program is one on the path, or `./NAME` for a file that was built. It may start the programs
    of the system, and those of the toolchain that it belongs to.
    """
    name = argv[0]
    executable = [*_SYSTEM]
    data = [*_SYSTEM_DATA, *readable]
    variables: dict[str, str] = {}
    if name.startswith("./"):
        own = (f"{{built}}/{name[2:]}", *argv[1:])
        return Step(own, _grants(data, executable), starts=(name[2:],))
    for language in LANGUAGES:
        if isinstance(found := _known(language, name), Toolchain):
            data += found.grants.readable
            executable += found.grants.executable
            variables |= _NODE if language in ("javascript", "typescript") else {}
            if name in found.tools and language != "typescript":
                return Step((found.tools[name], *argv[1:]), _grants(data, executable), variables)
    path = shutil.which(name)
    if path is None:
        raise NotInstalled(f"no program {name} on this machine")
    real = os.path.realpath(path)
    executable.append(real)
    return Step((os.path.abspath(path), *argv[1:]), _grants(data, executable), variables)


_BELONGS = {
    "c": ("gcc", "cc", "make", "cmake"),
    "cpp": ("g++", "c++", "make", "cmake"),
    "go": ("go",),
    "java": ("java", "javac"),
    "javascript": ("node", "tsc"),
    "python": ("python", "python3"),
    "rust": ("rustc", "cargo"),
    "typescript": ("tsc",),
}


def _known(language: str, name: str) -> Toolchain | str:
    """The toolchain of a language, if a tool belongs to it."""
    if name not in _BELONGS[language]:
        return ""
    return _found(language, os.environ.get("PATH", ""))


def _grants(readable: list[str], executable: list[str]) -> Grants:
    return Grants(_real(readable), _real(executable))
