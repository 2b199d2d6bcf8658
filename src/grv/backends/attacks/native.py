"""Attacks on the second jail by programs in C: they ask the kernel, hide memory, or never end."""

from __future__ import annotations

from .attack import Aim
from .tools import ToolAttack

HEAD = """
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void say(int worked) { puts(worked ? "breached" : "held"); fflush(stdout); }
"""
_LINKS = """
int main() {
    char target[4096]; int worked = 0;
    for (const char **path = (const char *[]){"/proc/@JUDGE@/cwd", "/proc/@JUDGE@/exe",
             "/proc/@JUDGE@/root", "/proc/@JUDGE@/fd/0", "/proc/1/exe", 0}; *path; path++)
        worked |= readlink(*path, target, sizeof target) > 0;
    say(worked);
}
"""
_PATH_ONLY = """
int main() {
    int place = open("@FILE@", O_PATH); char name[99], text[99];
    sprintf(name, "/proc/self/fd/%d", place);
    int again = open(name, O_RDONLY), copy = openat(place, "", O_RDONLY);
    int folder = open("/etc", O_PATH | O_DIRECTORY), inside = openat(folder, "passwd", O_RDONLY);
    say(read(again, text, 9) > 0 || read(copy, text, 9) > 0 || read(inside, text, 9) > 0);
}
"""
_HANDLES = """
int main() {
    struct { struct file_handle handle; char room[128]; } found = {{128}};
    int mount, worked = name_to_handle_at(AT_FDCWD, "@FILE@", &found.handle, &mount, 0) == 0;
    say(worked && open_by_handle_at(AT_FDCWD, &found.handle, O_RDONLY) >= 0);
}
"""
_SHARED = """
int main() {
    int worked = syscall(SYS_shmget, 4242, 4096, 01600) >= 0;
    worked |= syscall(SYS_msgget, 4242, 01600) >= 0 || syscall(SYS_semget, 4242, 1, 01600) >= 0;
    worked |= syscall(SYS_mq_open, "left", O_CREAT | O_RDWR, 0600, 0) >= 0;
    worked |= open("/dev/shm/left", O_CREAT | O_RDWR, 0600) >= 0;
    worked |= syscall(SYS_add_key, "user", "left", "x", 1, -4) >= 0;
    say(worked || syscall(SYS_memfd_create, "left", 0) >= 0);
}
"""
_KERNEL = """
int main() {
    long worked = 0;
    long calls[] = {SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_keyctl,
        SYS_unshare, SYS_setns, SYS_mount, SYS_chroot, SYS_ptrace, SYS_pidfd_open, SYS_init_module,
        SYS_kexec_load, SYS_personality, SYS_fanotify_init, SYS_inotify_init1, SYS_syslog,
        SYS_process_vm_readv, SYS_kcmp, SYS_io_setup, SYS_seccomp, SYS_setsid,
        SYS_landlock_create_ruleset};
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        worked |= syscall(calls[i], 0, 0, 0, 0, 0) >= 0 || (errno != EPERM && errno != ENOSYS);
    say(worked);
}
"""
_PROCESSES = """
static int child(void *x) { return 0; }
int main() {
    static char stack[1 << 16]; int worked = 0;
    worked |= clone(child, stack + sizeof stack, SIGCHLD, 0) > 0;
    worked |= clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, 0) > 0;
    worked |= clone(child, stack + sizeof stack, CLONE_NEWUSER | SIGCHLD, 0) > 0;
    worked |= clone(child, stack + sizeof stack, CLONE_PARENT | SIGCHLD, 0) > 0;
    worked |= vfork() > 0 || syscall(SYS_clone3, (long[11]){0, [4] = SIGCHLD}, 88) > 0;
    say(worked || system("true") == 0);
}
"""
_ENTRY = """
int main() {
    long result; char path[] = "@FILE@";
    /* The calls of 32 bits have other numbers, and pass a filter that does not look. */
    __asm__ volatile("int $0x80" : "=a"(result)
                     : "a"(5), "b"((long)path), "c"(0L), "d"(0L) : "memory");
    say(1);
}
"""
_X32 = "int main() { say(syscall(0x40000000 | SYS_getpid) > 0); }"
_WIDENS = """
int main() {
    struct rlimit more = {1 << 20, 1 << 20}; int worked = setrlimit(RLIMIT_NOFILE, &more) == 0;
    struct rlimit endless = {RLIM_INFINITY, RLIM_INFINITY};
    worked |= setrlimit(RLIMIT_FSIZE, &endless) == 0 || setrlimit(RLIMIT_CORE, &endless) == 0;
    worked |= prlimit(@JUDGE@, RLIMIT_CPU, &more, 0) == 0;
    worked |= prlimit(getppid(), RLIMIT_CPU, &more, 0) == 0;
    worked |= setpriority(PRIO_PROCESS, 0, -20) == 0 || setpriority(PRIO_PGRP, 0, 19) == 0;
    cpu_set_t all; memset(&all, 255, sizeof all);
    say(worked || sched_setaffinity(0, sizeof all, &all) == 0 || prctl(PR_SET_PDEATHSIG, 9) == 0);
}
"""
_OWNERS = """
int main() {
    int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair); int owner = @JUDGE@;
    int worked = fcntl(pair[0], F_SETOWN, owner) == 0 || fcntl(pair[0], F_SETSIG, SIGKILL) == 0;
    worked |= ioctl(pair[0], 0x8901, &owner) == 0 || ioctl(pair[0], 0x5452, &owner) == 0;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGKILL};
    timer_t timer;
    worked |= syscall(SYS_timer_create, CLOCK_REALTIME, &event, &timer) == 0;
    say(worked || syscall(SYS_rt_sigqueueinfo, owner, SIGTERM, (char[128]){0}) == 0);
}
"""
_SIGNALS = """
int main() {
    int worked = 0;
    for (int number = 1; number < 65; number++)
        worked |= kill(getppid(), number) == 0 || kill(1, number) == 0 || kill(-1, number) == 0 ||
            kill(@JUDGE@, number) == 0 || syscall(SYS_tgkill, getppid(), getppid(), number) == 0 ||
            syscall(SYS_tkill, getppid(), number) == 0;
    say(worked);
}
"""
_DUMPS = """
int main() {
    int worked = prctl(PR_SET_DUMPABLE, 1) == 0;
    worked |= open("/proc/self/coredump_filter", O_WRONLY) >= 0;
    worked |= open("/proc/self/oom_score_adj", O_WRONLY) >= 0;
    if (!worked) abort();
    say(1);
}
"""
_STOPS = 'int main() { puts("breached"); fflush(stdout); raise(SIGSTOP); }'
_CLOSES = """
int main() {
    puts("breached"); fflush(stdout);
    for (int i = 0; i < 64; i++) close(i);
    for (;;) pause();
}
"""
_DEAF = """
int main() {
    for (int i = 1; i < 65; i++) signal(i, SIG_IGN);
    sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0);
    for (volatile long i = 0;; i++) { }
}
"""
_MAPPED = """
int main() {
    for (int i = 0; i < 4000; i++) {
        char *part = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        memset(part, 1, 1 << 20);
    }
    say(1);
}
"""
_BUFFERS = """
int main() {
    static char block[1 << 16]; long total = 0; int pair[2];
    while (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
        for (int side = 0; side < 2; side++) {
            fcntl(pair[side], F_SETFL, O_NONBLOCK);
            for (long sent; (sent = write(pair[side], block, sizeof block)) > 0;) total += sent;
        }
    say(total > 64 << 20);
}
"""
_HIDDEN = """
int main() {
    /* Files without a name, and one that is only mapped. */
    static char block[1 << 20];
    for (int i = 0; i < 900; i++) {
        int file = open("f", O_RDWR | O_CREAT, 0600);
        if (file < 0 || write(file, block, sizeof block) < 0) break;
        unlink("f");
    }
    usleep(300000);
    say(1);
}
"""
_TREE = """
int main() {
    char name[20];
    for (int i = 0; i < 6000; i++) { sprintf(name, "%d", i); mkdir(name, 0); }
    close(open("unreadable", O_CREAT | O_RDWR, 0));
    for (int i = 0; i < 3000 && mkdir("deep", 0700) == 0 && chdir("deep") == 0; i++) { }
    usleep(300000);
    say(1);
}
"""
_SLOWLY = """
int main() {
    struct timespec moment = {0, 1000000};
    for (int i = 0; i < 1000000; i++) nanosleep(&moment, 0);
    say(1);
}
"""
_ERRORS = """
int main() {
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    while (write(2, block, sizeof block) > 0) { }
    say(1);
}
"""
_LOADS = """
int main(int count, char **names) {
    /* The loader is granted: what it starts stays in the same jail. */
    if (count > 1) {
        say(open("@FILE@", O_RDONLY) >= 0 || fork() >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0);
        return 0;
    }
    execl("/lib64/ld-linux-x86-64.so.2", "ld", names[0], "again", (char *)0);
    execl("/proc/self/exe", names[0], "again", (char *)0);
    say(0);
}
"""
_SCRIPT = """
int main() {
    int file = open("script", O_CREAT | O_WRONLY, 0755);
    if (write(file, "#!/bin/sh\\necho breached\\n", 24) != 24) say(0);
    close(file);
    execl("./script", "script", (char *)0);
    execl("/bin/sh", "sh", "script", (char *)0);
    execl("/usr/bin/python3", "python3", "-c", "print('breached')", (char *)0);
    say(0);
}
"""
_INPUT = """
int main() {
    /* The next test gets its own input, whatever this one does with it. */
    int number = getchar() - '0';
    int again = open("/proc/self/fd/0", O_RDWR);
    int worked = ftruncate(0, 0) == 0 || pwrite(0, "9", 1, 0) > 0 || pwrite(again, "9", 1, 0) > 0;
    worked |= mmap(0, 4096, PROT_WRITE, MAP_SHARED, 0, 0) != MAP_FAILED;
    if (number == 1) { puts("1"); return 0; }
    say(worked || number != 2);
}
"""
_EARLY = """
__attribute__((constructor)) static void early() {
    if (open("@FILE@", O_RDONLY) >= 0) { say(1); _exit(0); }
}
__attribute__((destructor)) static void late() { if (open("/etc/passwd", O_RDONLY) >= 0) say(1); }
int main() { say(0); }
"""
_OTHERS = """
int main() {
    DIR *folder = opendir("/tmp"); int worked = folder != 0;
    worked |= opendir("/proc") != 0 || opendir("..") != 0;
    worked |= opendir("/dev") != 0 || opendir("/sys") != 0;
    worked |= open("/proc/self/mem", O_RDWR) >= 0 || open("/proc/self/maps", O_RDONLY) >= 0;
    worked |= open("/proc/self/task/../../@JUDGE@/maps", O_RDONLY) >= 0;
    worked |= open("/dev/tty", O_RDWR) >= 0;
    say(worked || open("/dev/ptmx", O_RDWR) >= 0 || open("/dev/mem", O_RDONLY) >= 0);
}
"""


def _c(name: str, body: str, *reasons: str, behaves: bool = False) -> ToolAttack:
    return ToolAttack(name, "c", HEAD + body, Aim.BREACH, reasons, behaves)


ATTACKS = (
    _c("follows links to the judge", _LINKS),
    _c("opens paths first, then reads", _PATH_ONLY),
    _c("opens files by handle", _HANDLES),
    _c("leaves shared memory and queues", _SHARED),
    _c("makes rare calls", _KERNEL),
    _c("starts processes in other ways", _PROCESSES),
    _c("makes calls of 32 bits", _ENTRY, "crash"),
    _c("makes calls of x32", _X32, "crash"),
    _c("raises its limits, lowers the judge's", _WIDENS),
    _c("has the kernel signal the judge", _OWNERS),
    _c("sends every signal", _SIGNALS),
    _c("leaves a core dump", _DUMPS, "crash"),
    _c("stops itself after the answer", _STOPS, "timeout"),
    _c("closes its output and stays", _CLOSES, "timeout"),
    _c("ignores all signals", _DEAF, "timeout"),
    _c("takes shared memory", _MAPPED, "memory"),
    _c("hides memory in buffers", _BUFFERS),
    _c("hides files without a name", _HIDDEN, "too many files"),
    _c("makes a tree that is hard to remove", _TREE, "too many files"),
    _c("sleeps a little, often", _SLOWLY, "timeout"),
    _c("floods its messages", _ERRORS, "output limit"),
    _c("starts itself through the loader", _LOADS),
    _c("writes a script and starts it", _SCRIPT),
    _c("changes the input of the next test", _INPUT, behaves=True),
    _c("acts before and after its main function", _EARLY),
    _c("looks around in the file system", _OTHERS),
)
