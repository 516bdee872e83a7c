// SPDX-License-Identifier: Apache-2.0
// bitsweep-run, which deploy/run.sh hands over to: starts a job, passes signals on, keeps its
// deadlines, kills what is left of it, tries again, and picks the exit code. Signals are blocked
// and taken one by one, so that nothing runs in between.
// usage: RANKS START_LIMIT LIMIT RETRIES ELSEWHERE WORK MEMORY COUNT PROGRAM... COMMAND...
//
// START_LIMIT: seconds until the ranks have found each other; LIMIT: of all attempts; 0: none.
// ELSEWHERE 1: ranks may be on other hosts. WORK, a folder for files, and MEMORY, one for the ranks
// of this run, are removed at the end; empty: none. COUNT: words of bitsweep, or mpirun and flags.
#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_MS        4000 // between TERM and KILL
#define NUM_LOOKS      8    // at a new process: a rank begins as a copy of mpirun
#define MAX_PROCESSES  8192 // more of a job on this machine are not looked at

#define SAY(text, ...) fprintf(stderr, "%s: " text "\n", getenv("BITSWEEP_RUN_NAME"), __VA_ARGS__)

static struct {
    unsigned ranks, start_limit, retries;
    const char *limit, *work, *memory;
    int may_be_elsewhere;
    int num_start; // PROGRAM...
    char **words;  // and COMMAND..., up to a NULL
    int count;
} run;

static struct {
    pid_t process;   // 0: none
    char asked[64];  // why it ends before its time: a signal, the time limit; empty: it does not
    int is_at_limit; // it is the time limit
    int is_stopping; // told to end
    int is_given_up; // killed, as it would have waited for ever
    int ended_by;    // a signal: mpirun itself, which the ranks lose by that; 0: it ended by itself
    int is_complete; // says rank 0, whatever another rank met at the end
    int64_t limit_at, kill_at;        // ms; 0: none
    char status[4096], started[4200]; // files of rank 0: how it ended, and that it has all ranks
} job;

static sigset_t taken, before; // signals

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// ---- processes ----

struct processes {
    size_t count;
    struct process {
        pid_t id;
        int num_looks, is_rank;
    } items[MAX_PROCESSES];
};

static struct process *add_process(struct processes *list, pid_t id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].id == id) return &list->items[i];
    }
    if (list->count < MAX_PROCESSES) list->count++;
    list->items[list->count - 1] = (struct process){.id = id};
    return &list->items[list->count - 1];
}

static FILE *open_of(pid_t process, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    return fopen(path, "re");
}

// Files /proc/PROCESS/task/THREAD/NAME; globfree() is the caller's.
static glob_t files_of_threads(pid_t process, const char *name)
{
    char pattern[64];
    glob_t files = {0};
    snprintf(pattern, sizeof pattern, "/proc/%d/task/*/%s", (int)process, name);
    glob(pattern, 0, NULL, &files);
    return files;
}

static void add_children(struct processes *list, pid_t parent)
{
    glob_t files = files_of_threads(parent, "children");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "re");
        int child;
        while (file && fscanf(file, "%d", &child) == 1) add_process(list, child);
        if (file) fclose(file);
    }
    globfree(&files);
}

// All below this program: what a killed mpirun leaves becomes its child.
static const struct processes *all_processes(void)
{
    static struct processes all;
    all.count = 0;
    add_children(&all, getpid());
    for (size_t i = 0; i < all.count; i++) add_children(&all, all.items[i].id);
    return &all;
}

// From a file stat: a letter, Z where it has ended and its parent has not taken note; 0: there is
// none. Closes it.
static char read_state(FILE *file, unsigned long use[2])
{
    char line[1024], state = 0, *end = NULL;
    if (file && fgets(line, sizeof line, file)) end = strrchr(line, ')');
    if (end)
        sscanf(end, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu", &state, &use[0],
               &use[1]);
    if (file) fclose(file);
    return state;
}

static char state_of(pid_t process)
{
    unsigned long use[2];
    return read_state(open_of(process, "stat"), use);
}

static int rank_of(pid_t process) // -1: it is none
{
    static const char name[] = "OMPI_COMM_WORLD_RANK=";
    FILE *file = open_of(process, "environ");
    char *entry = NULL;
    size_t bytes = 0;
    int rank = -1;
    while (file && rank < 0 && getdelim(&entry, &bytes, '\0', file) > 0) {
        if (strncmp(entry, name, sizeof name - 1) == 0) rank = atoi(entry + sizeof name - 1);
    }
    free(entry);
    if (file) fclose(file);
    return rank;
}

// ---- killing ----

// Removes shared memory of a process from a folder that others use, too, and nobody else would
// tidy.
static void unlink_segments(pid_t process)
{
    FILE *file = open_of(process, "maps");
    char line[4500], *path;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        path = strchr(line, '/');
        if (path && strstr(path, "/vader_segment.") && !strchr(path, ' ')) unlink(path);
    }
    if (file) fclose(file);
}

// Everything. How many processes there were. Their memory comes first: ranks end by themselves when
// mpirun does.
static size_t kill_job(void)
{
    const struct processes *all = all_processes();
    size_t num_killed = 0;
    for (size_t i = 0; i < all->count && !run.memory[0]; i++) unlink_segments(all->items[i].id);
    for (size_t i = 0; i < all->count; i++) {
        char state = state_of(all->items[i].id);
        if (!state || state == 'Z') continue;
        kill(all->items[i].id, SIGKILL);
        num_killed++;
    }
    return num_killed;
}

// Takes note of all that has ended. Whether the job has; its exit code, as a shell has it.
static int has_ended(int *code)
{
    int how;
    for (pid_t process; (process = waitpid(-1, &how, WNOHANG)) > 0;) {
        if (process != job.process) continue;
        *code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
        if (WIFSIGNALED(how) && run.num_start > 1) job.ended_by = WTERMSIG(how); // else no mpirun
        job.process = 0; // its number may become another's
    }
    return !job.process;
}

static int remove_one(const char *path, const struct stat *file, int type, struct FTW *place)
{
    (void)file, (void)type, (void)place;
    return remove(path) != 0;
}

static void remove_all(const char *folder)
{
    if (folder[0]) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

// Until nothing is left: a process goes when it runs next, not when it is killed, and till then it
// holds files and locks. One that waits for a disk may stay for longer than this does.
static void clear_job(void)
{
    const struct timespec moment = {.tv_nsec = 50000000};
    int code;
    for (int tries = 0; tries < 100 && kill_job() > 0; tries++) {
        nanosleep(&moment, NULL);
        has_ended(&code);
    }
    remove_all(run.memory);
    if (run.memory[0]) mkdir(run.memory, 0700);
}

// TERM, once: a second one would make mpirun leave ranks behind.
static void stop_job(void)
{
    job.kill_at = now_ms() + STOP_MS;
    if (job.process) kill(job.process, SIGTERM);
}

static void give_up(const char *why)
{
    SAY("%s", why);
    job.is_given_up = 1;
    kill_job();
}

// ---- watching mpirun ----

// Times are in steps of a quarter of a second: a machine that is slow is given more.
static struct {
    struct processes looks; // at children of mpirun
    int64_t next;           // ms
    size_t num_running, most;
    uint64_t use;
    unsigned age, alone, asleep, fewer;
} watch;

// The ranks among the children of mpirun, which may also have those that start its daemons on other
// hosts, and those that have ended and that mpirun leaves as they are: it is deadlocked or stopped
// if they stay. A child that has ended does not say any more whether it was a rank.
static void count_ranks(void)
{
    static struct processes children;
    size_t num_dead = 0;
    children.count = watch.num_running = 0;
    add_children(&children, job.process);
    for (size_t i = 0; i < children.count; i++) {
        struct process *child = add_process(&watch.looks, children.items[i].id);
        char state = state_of(child->id);
        if (state && state != 'Z' && !child->is_rank && child->num_looks < NUM_LOOKS) {
            child->num_looks++;
            child->is_rank = rank_of(child->id) >= 0;
        }
        if (state == 'Z')
            num_dead += child->is_rank || !run.may_be_elsewhere;
        else
            watch.num_running += state && child->is_rank;
    }
    if (watch.num_running + num_dead > watch.most) watch.most = watch.num_running + num_dead;
}

// Whether all threads of mpirun have slept since the last time.
static int has_slept(void)
{
    uint64_t sum = 0, last = watch.use;
    int is_busy = 0;
    glob_t files = files_of_threads(job.process, "stat");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        unsigned long use[2] = {0};
        char state = read_state(fopen(files.gl_pathv[i], "re"), use);
        if (state == 'R' || state == 'D') is_busy = 1;
        sum = sum * 1000003 + (unsigned char)state + use[0] * 131 + use[1] * 257;
    }
    globfree(&files);
    watch.use = sum;
    return sum == last && !is_busy;
}

static void describe_start(void)
{
    const struct processes *all = all_processes();
    char stopped[1024] = "";
    size_t length = 0, num_here = 0;
    for (size_t i = 0; i < all->count; i++) {
        int rank = rank_of(all->items[i].id);
        num_here += rank >= 0;
        if (rank < 0 || toupper(state_of(all->items[i].id)) != 'T' || length > 900) continue;
        length += (size_t)snprintf(stopped + length, sizeof stopped - length,
                                   "%srank %d (process %d) is stopped", length ? ", " : "", rank,
                                   (int)all->items[i].id);
    }
    if (!length)
        snprintf(stopped, sizeof stopped, "%zu of %u have been started on this machine", num_here,
                 run.ranks);
    SAY("the ranks have not found each other within %u s: %s", run.start_limit, stopped);
}

static int written_code(void) // by rank 0; -1: none
{
    FILE *file = fopen(job.status, "re");
    char line[4096];
    int code = -1;
    while (file && fgets(line, sizeof line, file)) sscanf(line, "  \"exit_code\": %d", &code);
    if (file) fclose(file);
    return code;
}

// mpirun may outlive the ranks of this machine by 5 s; by 60 s where others may be elsewhere and
// rank 0 has said that all is complete: they take their time, but all have come to the end. With no
// other host it may not sleep for 2.75 s, either: on its way to the end it waits for 2.1 s at most.
// Once they have found each other the ranks see by themselves that one is missing.
static void judge_watch(void)
{
    int is_started = access(job.started, F_OK) == 0;
    unsigned most_alone = is_started && run.may_be_elsewhere && written_code() == 0 ? 240 : 20;
    if (watch.asleep >= 11 || watch.alone >= most_alone) {
        give_up("mpirun did not end after the ranks of this machine had, and is killed");
    } else if (!is_started && watch.fewer >= 12) {
        give_up(
            "a rank ended before the ranks had found each other, and mpirun has not noticed it");
    } else if (!is_started && watch.age / 4 >= run.start_limit) {
        describe_start();
        job.is_given_up = 1;
        stop_job();
    }
}

static void watch_job(void)
{
    int64_t now = now_ms();
    if (run.num_start == 1 || job.is_stopping || job.is_given_up || now < watch.next) return;
    watch.next = now + 250;
    count_ranks();
    int was_alone = watch.alone > 0, sleeps = has_slept();
    watch.age++;
    watch.alone = watch.num_running || !watch.most ? 0 : watch.alone + 1;
    watch.asleep =
        was_alone && watch.alone && sleeps && !run.may_be_elsewhere ? watch.asleep + 1 : 0;
    watch.fewer = watch.num_running == 0 || watch.num_running >= watch.most ? 0 : watch.fewer + 1;
    judge_watch();
}

// ---- one attempt ----

static void note_signal(int signal)
{
    if (signal <= 0 || signal == SIGCHLD) return;
    if (signal != SIGUSR2 && !job.asked[0])
        snprintf(job.asked, sizeof job.asked, "stopped by SIG%s", sigabbrev_np(signal));
    if (signal == SIGUSR1 || signal == SIGUSR2) {
        if (job.process) kill(job.process, signal);
    } else if (!job.is_stopping) {
        job.is_stopping = 1;
        stop_job();
    }
}

static void keep_deadlines(void)
{
    int64_t now = now_ms();
    if (job.limit_at && now >= job.limit_at && !job.is_stopping) {
        snprintf(job.asked, sizeof job.asked, "stopped at the time limit of %s s", run.limit);
        job.is_at_limit = job.is_stopping = 1;
        stop_job();
    } else if (job.kill_at && now >= job.kill_at) {
        job.kill_at = now + STOP_MS;
        kill_job();
    }
}

static pid_t start_job(void)
{
    pid_t parent = getpid(), process = fork();
    if (process != 0) return process;
    setsid(); // away from the terminal: Ctrl-C is for this program alone
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(run.words[0], run.words);
    SAY("%s: %s", run.words[0], strerror(errno));
    _exit(127);
}

static int run_and_wait(void)
{
    const struct timespec quarter = {.tv_nsec = 250000000}, none = {0};
    int code = 74, signal;
    job.kill_at = job.is_given_up = job.ended_by = 0;
    memset(&watch, 0, sizeof watch);
    job.process = start_job();
    if (job.process < 0) {
        SAY("no process for %s: %s", run.words[0], strerror(errno));
        job.process = 0;
    }
    while (!has_ended(&code)) {
        note_signal(sigtimedwait(&taken, NULL, &quarter));
        keep_deadlines();
        watch_job();
    }
    if (code != 0) clear_job();
    while ((signal = sigtimedwait(&taken, NULL, &none)) > 0) note_signal(signal);
    return code;
}

// ---- exit codes ----

static int is_lost(int code) // a rank, by a signal, or a host
{
    return (code > 128 && code < 200) || code == 205;
}

static int is_said(int code) // by the rank that gave it
{
    return code == 2 || code == 65 || code == 70 || code == 74;
}

// Says that mpirun itself failed, and why. With --quiet it says nothing of its own, and without it
// too much, so it is asked once more, to run another program: the first paragraph that it prints,
// as one line.
static void say_failure(int code)
{
    static char script[] =
        "code=$0 asked=()\n"
        "for word; do [[ $word == --quiet ]] || asked+=(\"$word\"); done\n"
        "((${#asked[@]} == $#)) ||\n"
        "    why=$(timeout -k 1 20 \"${asked[@]}\" true 2>&1 >/dev/null </dev/null | awk '\n"
        "        /^---/ && text == \"\" {next}\n"
        "        /^---/ || /^[[:space:]]*$/ {exit}\n"
        "        {gsub(/^[[:space:]]+|[[:space:]]+$/, \"\")}\n"
        "        {text = text (text == \"\" ? \"\" : \" \") $0}\n"
        "        END {sub(/:$/, \"\", text); if (text != \"\") print \": \" substr(text, 1, "
        "300)}')\n"
        "why=${why:-; --verbose shows what it says}\n"
        "echo \"$BITSWEEP_RUN_NAME: mpirun failed with exit code $code$why\" >&2\n";
    char **words = calloc((size_t)run.num_start + 4, sizeof *words), number[16];
    pid_t process = words ? fork() : -1;
    if (process > 0) waitpid(process, NULL, 0);
    if (process == 0) {
        snprintf(number, sizeof number, "%d", code);
        memcpy(words, (char *[]){(char[]){"bash"}, (char[]){"-c"}, script, number},
               4 * sizeof *words);
        memcpy(words + 4, run.words, (size_t)(run.num_start - 1) * sizeof *words);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(words[0], words);
        _exit(127);
    }
    free(words);
}

static void say_lost(const char *first, int code)
{
    const char *name = sigabbrev_np(code - 128), *who = job.ended_by ? "mpirun" : "a rank";
    if (code == 205)
        SAY("%smpirun lost the connection to a host", first);
    else if (is_lost(code))
        SAY("%s%s was ended by signal %d (%s)", first, who, code - 128, name ? name : "");
    else
        SAY("%smpirun failed with exit code %d; --verbose shows what it says", first, code);
}

// From what rank 0 has written and the exit code of the job; says what bitsweep has not said.
static int judge_written(int written, int code)
{
    int is_known = job.asked[0] || job.is_given_up;
    if (written == 74 && job.ended_by && !is_known) written = 75; // it could write to nobody
    if (written == 75 && is_said(code)) return code; // of a rank; mpirun stopped the others
    if (written == 75 && is_lost(code) && !is_known) say_lost("", code);
    if (written != 0 || code == 0) return written;
    job.is_complete = is_said(code) || code == 75;
    if (job.is_complete) return code;
    if (is_known) return 0;
    say_lost("complete, and then: ", code);
    // 1, 137, 143: mpirun or a rank was told to end, too late; 142: it waited in vain for another
    // at the end of MPI.
    return code == 1 || code == 137 || code == 143 || code == 142 ? 0 : 74;
}

static int judge_unwritten(int code)
{
    if (job.is_given_up) return 75;
    if (is_said(code) || code == 75) return code;
    if (code == 0)
        SAY("mpirun says that all is well, but rank 0 wrote no STATUS file (%s)", job.status);
    else if (!job.asked[0] && is_lost(code))
        say_lost("", code);
    else if (!job.asked[0])
        say_failure(code);
    if (job.asked[0] && !job.is_at_limit) SAY("%s", job.asked);
    return job.asked[0] || is_lost(code) ? 75 : 74;
}

// ---- attempts ----

static const char *value_of(const char *name) // of an option of the command; NULL: not given
{
    size_t length = strlen(name);
    for (int i = run.num_start + 1; i < run.count; i++) {
        const char *word = run.words[i];
        if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0) continue;
        if (word[2 + length] == '=') return word + 3 + length;
        if (!word[2 + length]) return i + 1 < run.count ? run.words[i + 1] : "";
    }
    return NULL;
}

static int can_resume(void)
{
    const char *name = run.words[run.num_start], *device = value_of("device"),
               *checkpoint = value_of("checkpoint");
    if (strcmp(name, "encode") == 0 || strcmp(name, "sweep") == 0) return 1;
    if (strcmp(name, "groundtruth") == 0)
        return !device || strncmp(device, "cuda", 4) != 0; // a GPU keeps no journal
    if (strcmp(name, "search") == 0)
        return !value_of("repeat") && !value_of("warmup"); // timed passes have none
    return strcmp(name, "train") == 0 && checkpoint && access(checkpoint, F_OK) == 0;
}

// A STATUS file of its own for each, but where the environment says where it is.
static int attempt(unsigned number)
{
    if (run.work[0]) {
        snprintf(job.status, sizeof job.status, "%s/status.%u", run.work, number);
        setenv("BITSWEEP_STATUS", job.status, 1);
    }
    snprintf(job.status, sizeof job.status, "%s", getenv("BITSWEEP_STATUS"));
    snprintf(job.started, sizeof job.started, "%s.started", job.status);
    setenv("BITSWEEP_STARTED", job.started, 1);
    unlink(job.status);
    unlink(job.started);
    int code = run_and_wait(), written = written_code();
    unlink(job.started);
    code = written >= 0 ? judge_written(written, code) : judge_unwritten(code);
    if (code == 75 && job.is_at_limit) SAY("%s", job.asked);
    return code;
}

static int run_until_done(void)
{
    static char resume[] = "--resume";
    for (unsigned number = 0;; number++) {
        int code = attempt(number), resumes = can_resume();
        if (code != 75 || job.is_complete || number >= run.retries || job.asked[0]) return code;
        if (resumes && !value_of("resume")) run.words[run.count++] = resume;
        SAY("retry %u of %u, %s", number + 1, run.retries,
            resumes ? "with --resume" : "from the start");
    }
}

static void take_signals(void)
{
    static const int all[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    struct sigaction action;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) // not what nohup, say, turns off
        if (sigaction(all[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&taken, all[i]);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &taken, &before);
}

int main(int count, char **words)
{
    enum { NUM_OWN = 9 };
    setenv("BITSWEEP_RUN_NAME", "run.sh", 0);
    if (count < NUM_OWN + 2 || atoi(words[8]) < 1 || atoi(words[8]) >= count - NUM_OWN) {
        SAY("%s is for deploy/run.sh alone, see its --help", words[0]);
        return 2;
    }
    run.ranks = (unsigned)atoi(words[1]);
    run.start_limit = (unsigned)atoi(words[2]);
    run.limit = words[3];
    run.retries = (unsigned)atoi(words[4]);
    run.may_be_elsewhere = atoi(words[5]);
    run.work = words[6];
    run.memory = words[7];
    run.num_start = atoi(words[8]);
    run.count = count - NUM_OWN;
    run.words = calloc((size_t)run.count + 2, sizeof *run.words); // --resume may come
    if (!run.words) return 74;
    memcpy(run.words, words + NUM_OWN, (size_t)run.count * sizeof *run.words);
    if (atof(run.limit) > 0) job.limit_at = now_ms() + (int64_t)(1000 * atof(run.limit));
    take_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int code = run_until_done();
    remove_all(run.work);
    remove_all(run.memory);
    return code;
}
