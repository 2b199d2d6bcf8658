"""Attacks on the second jail: on compilers, and by programs in other languages than Python."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..protocols import Problem
from .attack import Aim

_C = "#include <bits/stdc++.h>\n#include <fcntl.h>\n#include <sys/ptrace.h>\n"
_C += "#include <sys/socket.h>\n#include <sys/stat.h>\n#include <unistd.h>\n#include <signal.h>\n"
_C += "#include <netinet/in.h>\n#include <arpa/inet.h>\nusing namespace std;\n"
_C += 'void say(bool worked) { puts(worked ? "breached" : "held"); }\n'
_SEARCH = """
void search(const string& text) {
    size_t place = text.find("secret-");
    if (place != string::npos) { puts(text.substr(place, 39).c_str()); exit(0); }
}
string all(const string& path) {
    ifstream file(path);
    return string(istreambuf_iterator<char>(file), {});
}
"""
_EMBEDS = """
asm(".section .rodata\\nstart: .incbin \\"@FILE@\\"\\nfinish:\\n.text\\n");
extern const char start[], finish[];
int main() { search(string(start, finish - start)); }
"""
_HAS_INCLUDE = """
#if __has_include("@FILE@") || __has_include("/etc/shadow")
int main() { say(true); }
#else
int main() { say(false); }
#endif
"""
_READS = """
int main() {
    for (auto path : {"@FILE@", "/proc/@JUDGE@/environ", "/proc/@JUDGE@/mem", "/proc/1/environ",
                      "/proc/self/environ", "/etc/passwd", "/proc/@JUDGE@/cwd/tests.json"})
        search(all(path));
    for (char** item = environ; *item; item++) search(*item);
    puts("nothing");
}
"""
_CONNECTS = """
int main() {
    bool worked = false;
    for (int family = 0; family < 46; family++)
        for (int kind : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW})
            worked |= socket(family, kind, 0) >= 0;
    say(worked);
}
"""
_FORKS = "int main() { pid_t child = fork(); if (child == 0) _exit(0); say(child > 0); }"
_JUDGE = """
int main() {
    say(kill(@JUDGE@, 0) == 0 || kill(1, SIGSTOP) == 0 || kill(getppid(), SIGTERM) == 0 ||
        kill(-1, SIGTERM) == 0 || ptrace(PTRACE_ATTACH, @JUDGE@, 0, 0) == 0 ||
        ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0);
}
"""
_STARTS = """
int main() {
    for (auto path : {"/bin/sh", "/usr/bin/env", "/usr/bin/g++", "/bin/cat"})
        execl(path, path, "-c", "echo breached", nullptr);
    say(false);
}
"""
_CHANGES = """
int main(int count, char** names) {
    bool worked = false;
    for (string path : {string(names[0]), string("@FILE@"), string("/tmp/left"),
                        string("/usr/lib/left"), string("/usr/include/left.h"),
                        string("/dev/shm/left"), string(names[0]) + "x"})
        for (int flags : {O_WRONLY, O_RDWR | O_CREAT, O_RDONLY | O_TRUNC})
            worked |= open(path.c_str(), flags, 0644) >= 0;
    worked |= symlink("/etc/passwd", "link") == 0 || link(names[0], "link") == 0;
    worked |= chmod(names[0], 0777) == 0 || rename(names[0], "moved") == 0;
    worked |= unlink(names[0]) == 0 || mkfifo("pipe", 0600) == 0;
    say(worked);
}
"""
_LEAVES = """
int main(int count, char** names) {
    int number; cin >> number;
    if (number == 1) {
        ofstream("left") << "here";
        mkdir("folder", 0700);
        ofstream(string(names[0]) + ".left") << "here";
        puts("1");
        return 0;
    }
    say(!access("left", F_OK) || !access("folder", F_OK) ||
        !access((string(names[0]) + ".left").c_str(), F_OK));
}
"""
_MEMORY = """
int main() {
    vector<char*> kept;
    while (kept.size() < 4000) {
        kept.push_back((char*)malloc(1 << 20));
        memset(kept.back(), 1, 1 << 20);
    }
    say(true);
}
"""
_FILES = """
int main() {
    signal(SIGXFSZ, SIG_IGN);
    string block(1 << 20, 'x');
    for (int i = 0; i < 4000; i++) { ofstream("f" + to_string(i % 100), ios::app) << block; }
    say(true);
}
"""
_THREADS = """
int main() {
    vector<thread> all;
    for (int i = 0; i < 2000; i++) all.emplace_back([] { sleep(60); });
    say(true);
}
"""
_FLOODS = "int main() { string block(1 << 16, 'x'); for (;;) cout << block; }"
_SLEEPS = "int main() { sleep(1000); say(true); }"
_SPINS = "int main() { for (volatile long i = 0;; i++) { } }"
_SAYS = """
int main() {
    for (int i = 1; i < 64; i++)
        for (string text : {"passed\\n", "{\\"verdict\\": \\"passed\\"}\\n", "__RESULT__ 1\\n",
                            "{\\"ended\\": 1, \\"exit_code\\": 0}\\n"})
            if (write(i, text.data(), text.size()) < 0) continue;
    _exit(0);
}
"""
_HUGE = "int huge[1 << 28] = {1};\nint main() { say(true); }"
_ENDLESS = '#include "/dev/zero"\nint main() { say(true); }'
_NODE = """
const fs = require('fs'), net = require('net'), child = require('child_process');
const tries = [() => child.execSync('id'), () => child.spawnSync('/usr/bin/node', ['-v']).status,
  () => fs.readFileSync('/etc/passwd'), () => fs.writeFileSync(__filename, ''),
  () => process.kill(@JUDGE@, 0), () => process.kill(process.ppid, 'SIGTERM'),
  () => fs.symlinkSync('/etc/passwd', 'link')];
let worked = false;
for (const attempt of tries) { try { worked ||= attempt() !== null; } catch (error) { } }
const socket = net.connect(@PORT@, '127.0.0.1');
socket.on('connect', () => { console.log('breached'); process.exit(); });
socket.on('error', () => console.log(worked ? 'breached' : 'held'));
"""
_JAVA = """
import java.io.*; import java.net.*; import java.nio.file.*;
public class Main {
  interface Attempt { void make() throws Exception; }
  public static void main(String[] arguments) {
    Attempt[] attempts = {() -> Runtime.getRuntime().exec("id"),
      () -> Files.readString(Path.of("/etc/passwd")), () -> new Socket("127.0.0.1", @PORT@),
      () -> new ServerSocket(0), () -> Files.createSymbolicLink(Path.of("link"), Path.of("/etc"))};
    boolean worked = false;
    for (Attempt attempt : attempts) try { attempt.make(); worked = true; } catch (Exception e) { }
    System.out.println(worked ? "breached" : "held");
  }
}
"""
_PROCESSOR = """
import java.util.*; import javax.annotation.processing.*; import javax.lang.model.element.*;
@SupportedAnnotationTypes("*")
public class Main extends AbstractProcessor {
  public boolean process(Set<? extends TypeElement> all, RoundEnvironment around) {
    new java.io.File("processed").mkdir(); return true; }
  public static void main(String[] arguments) throws Exception {
    var here = Main.class.getProtectionDomain().getCodeSource().getLocation().toURI();
    boolean ran = new java.io.File(new java.io.File(here), "processed").exists();
    System.out.println(ran ? "breached" : "held"); }
}
"""
_RUST = 'fn main() { let t = include_str!("@FILE@"); println!("{}", &t[14..53]); }'
_RUST_MODULE = '#[path = "/etc/passwd"] mod taken;\nfn main() { println!("breached"); }'
_GO = """
package main
import ("fmt"; "net"; "os"; "os/exec")
func main() {
    _, one := os.ReadFile("/etc/passwd")
    _, two := exec.Command("/bin/sh", "-c", "id").Output()
    _, three := net.Dial("tcp", "127.0.0.1:@PORT@")
    if one == nil || two == nil || three == nil { fmt.Println("breached"); return }
    fmt.Println("held")
}
"""


@dataclass(frozen=True, slots=True)
class ToolAttack:
    """A program in some language that must not pass; the fields are those of `Attack`.

    Attributes:
        check: the check that it attacks, if it is not of kind `run` with a language. `@EXPECTED@`
            in it becomes what the program must print.
    """

    name: str
    language: str
    source: str
    aim: Aim = Aim.BREACH
    reasons: tuple[str, ...] = ()
    behaves: bool = False
    check: Mapping[str, Any] | None = None


def _cpp(name: str, body: str, aim: Aim = Aim.BREACH, *reasons: str) -> ToolAttack:
    return ToolAttack(name, "cpp", f"{_C}{_SEARCH}{body}", aim, reasons)


ATTACKS = (
    _cpp("embeds a file while it is assembled", _EMBEDS, Aim.FORGE, "does not compile"),
    _cpp("asks the compiler for files", _HAS_INCLUDE),
    _cpp("reads files, and the memory of the judge", _READS, Aim.FORGE),
    _cpp("opens sockets of every family", _CONNECTS),
    _cpp("starts a process", _FORKS),
    _cpp("signals and traces the judge", _JUDGE),
    _cpp("becomes another program", _STARTS),
    _cpp("changes itself, tools and other files", _CHANGES),
    ToolAttack("leaves files for the next test", "cpp", _C + _LEAVES, behaves=True),
    _cpp("takes memory", _MEMORY, Aim.BREACH, "memory"),
    _cpp("fills the disk", _FILES),
    _cpp("starts threads", _THREADS),
    _cpp("floods the output", _FLOODS, Aim.BREACH, "output limit"),
    _cpp("sleeps", _SLEEPS, Aim.BREACH, "timeout"),
    _cpp("runs for ever", _SPINS, Aim.BREACH, "timeout"),
    _cpp("prints results of a judge", _SAYS, Aim.FORGE),
    _cpp("has the compiler write a huge file", _HUGE),
    _cpp("has the compiler read for ever", _ENDLESS),
    ToolAttack("starts processes, connects and reads", "javascript", _NODE),
    ToolAttack("starts processes, connects and reads", "java", _JAVA),
    ToolAttack("is an annotation processor", "java", _PROCESSOR),
    ToolAttack("includes a file", "rust", _RUST, Aim.FORGE, ("does not compile",)),
    ToolAttack("takes a file for a module", "rust", _RUST_MODULE, reasons=("does not compile",)),
    ToolAttack("starts processes, connects and reads", "go", _GO),
)


def trial_of(attack: ToolAttack, secret: str) -> tuple[str, Problem]:
    """The name and the problem of an attack, whose program must not pass."""
    expected = {
        Aim.FORGE: secret,
        Aim.NUMBER: str(secrets.randbits(60)),
        Aim.BREACH: "breached",
    }[attack.aim]
    name = f"{attack.name} ({attack.language})"
    if attack.check is not None:
        text = json.dumps(dict(attack.check)).replace("@EXPECTED@", expected)
        return name, Problem(name, check=json.loads(text))
    tests: list[dict[str, Any]] = [{"input": f"{x}\n", "output": expected} for x in (1, 2)]
    if attack.behaves:
        tests[0]["output"] = "1"
    return name, Problem(name, check={"kind": "run", "language": attack.language, "tests": tests})
