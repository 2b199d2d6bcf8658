"""Attacks on compilers: they read files for a candidate, start other programs, or never end."""

from __future__ import annotations

from .attack import Aim
from .tools import ToolAttack

_SAYS = '#include <stdio.h>\nint main() { puts("breached"); }\n'
_LINE = '#line 1 "@FILE@"\nint main() { return nothing; }\n'
_ASSEMBLER_INCLUDES = f'__asm__(".include \\"@FILE@\\"");\n{_SAYS}'
_TWICE = ".rept 100000000\\n.rept 100000000\\n.quad 1\\n.endr\\n.endr"
_REPEATS = f'__asm__(".data\\n{_TWICE}\\n.text");\n{_SAYS}'
_ORIGIN = f'__asm__(".data\\n.org 0x7fffffff\\n.quad 1\\n.text");\n{_SAYS}'
_ITSELF = f"#include __FILE__\n{_SAYS}"
_DEPENDS = f'#pragma GCC dependency "@FILE@" secret\n#pragma GCC pch_preprocess "@FILE@"\n{_SAYS}'
_TEMPLATES = """
#include <cstdio>
template <int N> struct Deep { static const int value = Deep<N + 1>::value + Deep<N + 2>::value; };
int main() { std::puts(Deep<0>::value ? "breached" : "held"); }
"""
_FLOOD = (
    'template <int N> struct Each { static_assert(N < 0, "flood"); char x[N - 100000]; };\n'
    + "".join(f"Each<{n}> e{n}; int {'y' * 200}{n} = missing{n};\n" for n in range(6000))
    + "int main() { }\n"
)
_RUST_SECRETS = """
fn main() {
    let told = option_env!("GRV_ATTACKED_SECRET").unwrap_or("nothing");
    println!("{}", told);
}
"""
_RUST_LINKS = """
#[link(name = "@FILE@", kind = "dylib", modifiers = "+verbatim")]
extern "C" { fn secret() -> i32; }
fn main() { println!("{}", unsafe { secret() }); println!("breached"); }
"""
_RUST_MACRO = """
#![crate_type = "proc-macro"]
extern crate proc_macro;
#[proc_macro] pub fn run(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    std::fs::read_to_string("@FILE@").unwrap().parse().unwrap()
}
fn main() { println!("breached"); }
"""
_RUST_BYTES = (
    'fn main() { print!("{}", include_bytes!("/proc/self/environ").len()); println!("breached"); }'
)
_RUST_PROCESS = """
fn main() {
    let ran = std::process::Command::new("/bin/sh").arg("-c").arg("id").output().is_ok();
    let read = std::fs::read("/proc/@JUDGE@/environ").is_ok() || std::fs::read("@FILE@").is_ok();
    let joined = std::net::TcpStream::connect("127.0.0.1:@PORT@").is_ok();
    println!("{}", if ran || read || joined { "breached" } else { "held" });
}
"""
_GO_EMBEDS = """
package main
import _ "embed"
//go:embed tests.json
var text string
func main() { println(text); print("breached") }
"""
_GO_FLAGS = """
package main
/*
#cgo LDFLAGS: -Wl,-T,@FILE@
#include "@FILE@"
*/
import "C"
import "fmt"
func main() { fmt.Println("breached") }
"""
_GO_DIRECTIVES = """
package main
import "fmt"
//go:cgo_ldflag "-o/tmp/left"
//go:cgo_import_dynamic system system "libc.so.6"
//go:linkname nowhere os.runtime_args
func nowhere() []string
func main() { fmt.Println("breached", nowhere()) }
"""
_JAVA_CONSTANTS = (
    "public class Main {\n"
    + '  static final String S0 = "xxxxxxxxxxxxxxxx";\n'
    + "".join(f"  static final String S{n + 1} = S{n} + S{n};\n" for n in range(28))
    + "  public static void main(String[] a) {\n"
    + '    System.out.println(S28.length() > 0 ? "breached" : ""); }\n}\n'
)
_JAVA_NATIVE = """
import java.lang.reflect.*;
public class Main {
  interface Attempt { Object make() throws Throwable; }
  public static void main(String[] arguments) {
    Attempt[] attempts = {
      () -> { System.load("@FILE@"); return 1; },
      () -> ProcessHandle.of(@JUDGE@L).get().destroy() ? 1 : null,
      () -> new ProcessBuilder("/usr/bin/java", "-version").start(),
      () -> java.nio.file.Files.list(java.nio.file.Path.of("/proc")),
      () -> java.net.InetAddress.getByName("example.org").isReachable(10) ? 1 : null,
      () -> java.nio.channels.DatagramChannel.open(),
      () -> java.nio.file.Files.createTempFile(java.nio.file.Path.of("/tmp"), "left", ""),
      () -> System.getenv("GRV_ATTACKED_SECRET")};
    boolean worked = false;
    for (Attempt attempt : attempts)
      try { worked |= attempt.make() != null; } catch (Throwable error) { }
    System.out.println(worked ? "breached" : "held");
  }
}
"""
_TYPES = """
/// <reference path="@FILE@" />
import * as fs from 'fs';
let found = 'held';
for (const path of ['@FILE@', '/etc/passwd', '/proc/@JUDGE@/environ']) {
  try { found = require(path) ? 'breached' : found; } catch (error) { }
  try { found = fs.readFileSync(path, 'utf8') ? 'breached' : found; } catch (error) { }
}
console.log(found);
"""
_TYPES_IMPORT = "import text from '@FILE@';\nconsole.log(text ? 'breached' : 'held');\n"
_SCRIPT = """
const fs = require('fs'), { Worker } = require('worker_threads'), inspector = require('inspector');
const tries = [() => inspector.open(0) && inspector.url(), () => process.setuid(1) || 1,
  () => process.report.writeReport('/tmp/left.json') && fs.existsSync('/tmp/left.json'),
  () => process.dlopen({ exports: {} }, '@FILE@') || 1,
  () => fs.linkSync(__filename, 'link') || 1, () => fs.chmodSync(__filename, 0o777) || 1,
  () => fs.readdirSync('/tmp').length, () => fs.watch('@FILE@'),
  () => process.chdir('/tmp') || fs.readdirSync('.'),
  () => require('child_process').spawnSync('/usr/bin/id').status === 0,
  () => fs.openSync('/proc/self/mem', 'r+'), () => process.env.GRV_ATTACKED_SECRET,
  () => require('dgram').createSocket('udp4').bind(0) && null,
  () => process.kill(-1, 'SIGSTOP')];
let worked = false;
process.on('uncaughtException', () => {});
for (const attempt of tries) { try { worked ||= Boolean(attempt()); } catch (error) { } }
const inside = `const fs = require('fs'); let worked = false;
  for (const path of ['@FILE@', '/etc/passwd'])
    try { fs.readFileSync(path); worked = true; } catch (e) { }
  require('worker_threads').parentPort.postMessage(worked);`;
const worker = new Worker(inside, { eval: true });
worker.on('message', also => {
  console.log(worked || also ? 'breached' : 'held');
  process.exit();
});
"""
_GROWS = """
const kept = [];
const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 });
for (let i = 0; i < 4000; i++) {
  kept.push(Buffer.alloc(1 << 20, i)); memory.grow(8);
  new Uint8Array(memory.buffer).fill(1);
}
console.log('breached');
"""
_REFUSED = ("does not compile",)

ATTACKS = (
    ToolAttack("has an error message quote a file", "c", _LINE, Aim.FORGE, _REFUSED),
    ToolAttack("has the assembler include a file", "c", _ASSEMBLER_INCLUDES, reasons=_REFUSED),
    ToolAttack("has the assembler repeat without end", "c", _REPEATS),
    ToolAttack("has the assembler write far away", "c", _ORIGIN),
    ToolAttack("includes itself", "c", _ITSELF, reasons=_REFUSED),
    ToolAttack("names files in pragmas", "c", _DEPENDS, Aim.FORGE),
    ToolAttack("has templates without end", "cpp", _TEMPLATES),
    ToolAttack("has the compiler say too much", "cpp", _FLOOD),
    ToolAttack("asks the compiler for the environment", "rust", _RUST_SECRETS, Aim.FORGE),
    ToolAttack("links a file", "rust", _RUST_LINKS, reasons=_REFUSED),
    ToolAttack("is a macro that runs in the compiler", "rust", _RUST_MACRO),
    ToolAttack("includes the environment", "rust", _RUST_BYTES, reasons=_REFUSED),
    ToolAttack("starts processes, connects and reads", "rust", _RUST_PROCESS),
    ToolAttack("embeds a file", "go", _GO_EMBEDS, reasons=_REFUSED),
    ToolAttack("gives flags to the linker", "go", _GO_FLAGS, reasons=_REFUSED),
    ToolAttack("gives directives to the compiler", "go", _GO_DIRECTIVES, reasons=_REFUSED),
    ToolAttack("has constants that grow", "java", _JAVA_CONSTANTS),
    ToolAttack("looks for rare ways out", "java", _JAVA_NATIVE),
    ToolAttack("refers to files", "typescript", _TYPES),
    ToolAttack("imports a file", "typescript", _TYPES_IMPORT, reasons=("no answer",)),
    ToolAttack("looks for rare ways out", "javascript", _SCRIPT),
    ToolAttack("takes memory outside its heap", "javascript", _GROWS, reasons=("memory",)),
)
