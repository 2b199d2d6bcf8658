"""System call numbers, and which calls a candidate may make. Tests check them against the headers.

Each entry is `name:x86_64:aarch64`, with a dash if the architecture lacks the call. A call in no
table fails with ENOSYS, so that libraries fall back to older calls.
"""

from __future__ import annotations

ALLOWED = """
read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69
pwritev:296:70 preadv2:327:286 pwritev2:328:287 close:3:57 close_range:436:436 fstat:5:80
newfstatat:262:79 stat:4:- lstat:6:- statx:332:291 lseek:8:62 access:21:- faccessat:269:48
faccessat2:439:439 readlink:89:- readlinkat:267:78 getcwd:79:17 chdir:80:49 fchdir:81:50
getdents:78:- getdents64:217:61 mkdir:83:- mkdirat:258:34 rmdir:84:- unlink:87:- unlinkat:263:35
rename:82:- renameat:264:38 renameat2:316:276 umask:95:166 ftruncate:77:46 fsync:74:82
fdatasync:75:83 fadvise64:221:223 flock:73:32 statfs:137:43 fstatfs:138:44 dup:32:23 dup2:33:-
dup3:292:24 pipe:22:- pipe2:293:59 sendfile:40:71 copy_file_range:326:285 mmap:9:222
munmap:11:215 mprotect:10:226 mremap:25:216 madvise:28:233 mincore:27:232 msync:26:227
brk:12:214 poll:7:- ppoll:271:73 select:23:- pselect6:270:72 epoll_create:213:-
epoll_create1:291:20 epoll_ctl:233:21 epoll_wait:232:- epoll_pwait:281:22 epoll_pwait2:441:441
eventfd:284:- eventfd2:290:19 timerfd_create:283:85 timerfd_settime:286:86
timerfd_gettime:287:87 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139
rt_sigpending:127:136 rt_sigsuspend:130:133 rt_sigtimedwait:128:137 sigaltstack:131:132
getuid:102:174 geteuid:107:175 getgid:104:176 getegid:108:177 getpid:39:172 getppid:110:173
gettid:186:178 getpgrp:111:- getpgid:121:155 getsid:124:156 getgroups:115:158 getresuid:118:148
getresgid:120:150 getpriority:140:141 getrusage:98:165 getrlimit:97:163
times:100:153 uname:63:160 sysinfo:99:179 getcpu:309:168 sched_yield:24:124
sched_getaffinity:204:123 sched_getparam:143:121 sched_getscheduler:145:120
sched_get_priority_max:146:125 sched_get_priority_min:147:126 nanosleep:35:101
clock_nanosleep:230:115 clock_gettime:228:113 clock_getres:229:114 gettimeofday:96:169
time:201:- alarm:37:- getitimer:36:102 setitimer:38:103
pause:34:- restart_syscall:219:128 futex:202:98 futex_waitv:449:449 set_robust_list:273:99
get_robust_list:274:100 set_tid_address:218:96 arch_prctl:158:- rseq:334:293 membarrier:324:283
getrandom:318:278 recvfrom:45:207 shutdown:48:210 exit:60:93 exit_group:231:94
"""

# Allowed with certain arguments only, which seccomp.py defines.
CONDITIONAL = """
fcntl:72:25 open:2:- openat:257:56 prctl:157:167 clone:56:220 kill:62:129 tgkill:234:131
prlimit64:302:261 setrlimit:160:164 ioctl:16:29 socketpair:53:199 sendto:44:206
"""

# Refused with EPERM: calls that programs commonly try.
DENIED = """
execve:59:221 execveat:322:281 fork:57:- vfork:58:- ptrace:101:117 process_vm_readv:310:270
process_vm_writev:311:271 kcmp:312:272 socket:41:198 connect:42:203 bind:49:200 listen:50:201
accept:43:202 accept4:288:242 sendmsg:46:211 sendmmsg:307:269 recvmsg:47:212 recvmmsg:299:243
getsockopt:55:209 setsockopt:54:208 getsockname:51:204 getpeername:52:205 mount:165:40
umount2:166:39 unshare:272:97 setns:308:268 chroot:161:51 pivot_root:155:41 setuid:105:146
setgid:106:144 setreuid:113:145 setregid:114:143 setresuid:117:147 setresgid:119:149
setgroups:116:159 setfsuid:122:151 setfsgid:123:152 capset:126:91 chmod:90:- fchmod:91:52
fchmodat:268:53 chown:92:- fchown:93:55 lchown:94:- fchownat:260:54 utime:132:- utimes:235:-
utimensat:280:88 futimesat:261:- setxattr:188:5 lsetxattr:189:6 fsetxattr:190:7
removexattr:197:14 lremovexattr:198:15 fremovexattr:199:16 truncate:76:45 symlink:88:-
symlinkat:266:36 link:86:- linkat:265:37 mknod:133:- mknodat:259:33 name_to_handle_at:303:264
open_by_handle_at:304:265 tkill:200:130 rt_sigqueueinfo:129:138 rt_tgsigqueueinfo:297:240
timer_create:222:107 timer_settime:223:110 timer_gettime:224:108 timer_getoverrun:225:109
timer_delete:226:111 mq_notify:244:184
pidfd_open:434:434 pidfd_getfd:438:438 pidfd_send_signal:424:424 setsid:112:157 setpgid:109:154
setpriority:141:140 sched_setaffinity:203:122 sched_setparam:142:118 sched_setscheduler:144:119
sched_setattr:314:274 ioprio_set:251:30 personality:135:92 shmget:29:194 shmat:30:196
shmctl:31:195 semget:64:190 semop:65:193 semctl:66:191 msgget:68:186 msgsnd:69:189 msgrcv:70:188
msgctl:71:187 mq_open:240:180 memfd_create:319:279 userfaultfd:323:282 inotify_init:253:-
inotify_init1:294:26 inotify_add_watch:254:27 fanotify_init:300:262 bpf:321:280
perf_event_open:298:241 keyctl:250:219 add_key:248:217 request_key:249:218
io_uring_setup:425:425 io_uring_enter:426:426 io_uring_register:427:427 io_setup:206:0
seccomp:317:277 landlock_create_ruleset:444:444 landlock_add_rule:445:445
landlock_restrict_self:446:446 reboot:169:142 sethostname:170:161 setdomainname:171:162
swapon:167:224 swapoff:168:225 init_module:175:105 finit_module:313:273 delete_module:176:106
kexec_load:246:104 clock_settime:227:112 settimeofday:164:170 acct:163:89 quotactl:179:60
iopl:172:- ioperm:173:- syslog:103:116 vhangup:153:58
"""

# Unknown to an interpreter; the filters of programs and tools allow them (seccomp.py).
OF_TOOLS = """
wait4:61:260 waitid:247:95 fallocate:285:47
"""

ARCHITECTURES = ("x86_64", "aarch64")


def numbers(table: str, architecture: str) -> dict[str, int]:
    """The number of each call in a table that the architecture has."""
    column = 1 + ARCHITECTURES.index(architecture)
    entries = [entry.split(":") for entry in table.split()]
    return {entry[0]: int(entry[column]) for entry in entries if entry[column] != "-"}
