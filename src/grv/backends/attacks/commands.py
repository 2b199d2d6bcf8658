"""Attacks on commands in the jail, and on checkers: by candidates that may start processes."""

from __future__ import annotations

from typing import Any

from .attack import Aim
from .native import HEAD
from .tools import ToolAttack

# A candidate that is run as Python. The judge looks for one line in what it printed.
_RUN: dict[str, Any] = {"kind": "command", "jail": True, "run": ["python3", "{}"]}
_JUDGED = _RUN | {"argv": ["grep", "-qx", "@EXPECTED@", "{output}"]}
_JUDGED |= {"limits": {"seconds": 2, "memory_mb": 256, "output_mb": 1, "files_mb": 16}}
# A program in C that, other than one of a listed language, may start processes.
_COMPILED: dict[str, Any] = {
    "kind": "run",
    "source": "main.c",
    "build": ["gcc", "-w", "-o", "main", "main.c"],
    "run": ["./main"],
    "tests": [{"input": "", "output": "@EXPECTED@"}],
}
_READS = _JUDGED | {"readable": ["/usr/share/common-licenses"]}
_ITSELF = _JUDGED | {"argv": ["grep", "-qx", "breached", "{}"]}
_CHECKER = """
import sys
given, printed, expected = (open(path, errors="replace").read() for path in sys.argv[1:])
sys.exit(0 if printed.strip() == expected.strip() else 1)
"""
_CHECKED: dict[str, Any] = {
    "kind": "run",
    "language": "python",
    "tests": [{"input": "1\n", "output": "@EXPECTED@"}],
    "checker": {"language": "python", "program": _CHECKER},
}
_HEAD = """
import ctypes, os, signal, socket, subprocess, sys, time
def attempt(action):
    try: return bool(action())
    except (OSError, ValueError, LookupError, subprocess.SubprocessError): return False
def say(*actions):
    print("breached" if any(map(attempt, actions)) else "held", flush=True)
"""
_BUFFERS = """
int main() {
    static char block[1 << 16]; int pair[2]; int done[2];
    if (pipe(done)) return 1;
    for (int child = 0; child < 20; child++) {
        if (fork()) continue;
        while (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
            for (int side = 0; side < 2; side++) {
                fcntl(pair[side], F_SETFL, O_NONBLOCK);
                while (write(pair[side], block, sizeof block) > 0) { }
            }
        write(done[1], block, 1);
        sleep(60);
    }
    for (int child = 0; child < 20; child++) read(done[0], block, 1);
    say(1);
}
"""
_BUSY = """
int main() {
    for (int child = 0; child < 30; child++) if (fork() == 0) break;
    for (volatile long i = 0;; i++) { }
}
"""
_CHURN = """
int main() {
    for (;;) {
        for (int child = 0; child < 20; child++) if (fork() == 0) _exit(0);
        while (waitpid(-1, 0, WNOHANG) > 0) { }
    }
}
"""
_SPLIT = """
for _ in range(20):
    if os.fork() == 0:
        kept = bytearray(60 << 20)
        for i in range(0, len(kept), 4096): kept[i] = 1
        time.sleep(60)
        os._exit(0)
time.sleep(1.5)
print("breached")
"""
_LEAVES = """
for _ in range(3):
    if os.fork() == 0:
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1)
            open("left", "w").write("here")
            while True: time.sleep(0.1)
        os._exit(0)
say(os.setsid, lambda: os.setpgid(0, 0), lambda: os.setpgrp() or 1, lambda: os.path.exists("left"))
"""
_SIGNALS = """
harmless = (signal.SIGCHLD, signal.SIGCONT, signal.SIGKILL)
numbers = [number for number in signal.valid_signals() if number not in harmless]
for number in numbers:
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def send(target, number):
    os.kill(target, number)
    return target not in (0, -1)
others = [os.getppid(), 1, @JUDGE@]
say(*(lambda t=t, n=n: send(t, n) for t in others for n in numbers if t > 0),
    lambda: os.kill(os.getpid(), signal.SIGKILL) or 1)
"""
_STOPS = """
print("breached", flush=True)
os.kill(0, signal.SIGSTOP)
time.sleep(60)
"""
_TRACES = """
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
libc = ctypes.CDLL(None, use_errno=True)
say(lambda: libc.ptrace(16, child, 0, 0) == 0, lambda: open(f"/proc/{child}/mem", "rb"),
    lambda: open(f"/proc/{os.getppid()}/environ").read(), lambda: open("/proc/self/status").read(),
    lambda: os.listdir("/proc"), lambda: os.readlink(f"/proc/{os.getppid()}/exe"))
"""
_PROGRAMS = """
def ran(*argv): return subprocess.run(argv, capture_output=True, timeout=1).returncode == 0
say(lambda: ran("unshare", "-Ur", "true"), lambda: ran("mount", "-t", "tmpfs", "none", "/mnt"),
    lambda: ran("su", "-c", "true"), lambda: ran("cat", "/etc/passwd"),
    lambda: ran("cat", "@FILE@"), lambda: ran("ln", "-s", "/etc", "link"),
    lambda: ran("mkfifo", "pipe"), lambda: ran("chmod", "777", "."),
    lambda: ran("chrt", "-f", "1", "true"), lambda: ran("setsid", "true"),
    lambda: ran("ls", "/root", "/home"), lambda: ran("touch", "/tmp/left"),
    lambda: ran("bash", "-c", "echo > /dev/tcp/127.0.0.1/@PORT@"),
    lambda: ran("ps", "-e"))
"""
_CHANGES = """
for name in ("candidate.txt", "output.txt", "../built/candidate.txt"):
    try: open(name, "w").write("breached\\n")
    except OSError: pass
print("breached")
"""
_GRANTED = """
say(lambda: os.listdir("/usr/share/common-licenses") and open("@FILE@").read(),
    lambda: open("/proc/1/cmdline").read(), lambda: os.listdir("../../.."),
    lambda: os.listdir("../.."))
"""
_MODULE = """
say(lambda: open("/etc/shadow").read(), lambda: os.environ["GRV_ATTACKED_SECRET"],
    lambda: any("secret-" in value for value in os.environ.values()),
    lambda: any("tests.json" in os.readlink(f"/proc/self/fd/{n}") for n in range(3, 64)
                if os.path.exists(f"/proc/self/fd/{n}")))
"""
_BYTES = """
sys.stdout.buffer.write(bytes(range(256)) * 1000 + b"\\xed\\xa0\\x80\\n")
"""
_VERDICTS = """
print("0\\npassed\\n{\\"verdict\\": \\"passed\\"}\\n--version\\n-q\\n")
sys.exit(0)
"""
_ABSTRACT = """
say(lambda: socket.socket(socket.AF_UNIX), lambda: socket.create_server(("", 0)),
    lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
    lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
    lambda: socket.fromfd(0, socket.AF_UNIX, socket.SOCK_STREAM).getpeername(),
    lambda: socket.send_fds(socket.socketpair()[0], [b"x"], [0]))
"""
_OUTPUT = "print('@' * 900_000)\nprint('[' * 50_000)\n"


def _command(
    name: str, body: str, *reasons: str, check: dict[str, Any] = _JUDGED, aim: Aim = Aim.BREACH
) -> ToolAttack:
    return ToolAttack(name, "python", _HEAD + body, aim, reasons, check=check)


def _compiled(name: str, body: str, *reasons: str) -> ToolAttack:
    return ToolAttack(name, "c", HEAD + body, reasons=reasons, check=_COMPILED)


ATTACKS = (
    _compiled("hides memory in buffers of many processes", _BUFFERS, "too many files"),
    _compiled("is busy in many processes", _BUSY, "timeout"),
    _compiled("starts processes that end at once", _CHURN, "timeout", "too many threads"),
    _command("takes memory in many processes", _SPLIT, "memory"),
    _command("leaves processes behind", _LEAVES),
    _command("signals everything", _SIGNALS),
    _command("stops all its processes after the answer", _STOPS, "timeout"),
    _command("traces processes", _TRACES),
    _command("starts programs of the system", _PROGRAMS),
    _command("changes the files of the command that judges", _CHANGES, check=_ITSELF),
    _command("reads what only the judge may read", _GRANTED, check=_READS),
    _command("looks for the secret", _MODULE),
    _command("prints bytes that are no text", _BYTES),
    _command("prints verdicts and options", _VERDICTS, aim=Aim.FORGE),
    _command("makes sockets of other kinds", _ABSTRACT),
    _command("prints much for the checker", _OUTPUT, check=_CHECKED, aim=Aim.FORGE),
    _command("prints bytes for the checker", _BYTES, check=_CHECKED, aim=Aim.FORGE),
    _command("prints verdicts for the checker", _VERDICTS, check=_CHECKED, aim=Aim.FORGE),
)
