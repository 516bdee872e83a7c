#ifndef _GNU_SOURCE
#define _GNU_SOURCE // prctl
#endif
#include "coordinator/sweep/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int redirect(const char *path, int flags, int to)
{
    int fd = open(path, flags, 0666);
    return fd >= 0 && dup2(fd, to) >= 0 ? 0 : -1;
}

// Handlers of the parent's signals pass them to a thread that the child does not have: one that
// comes before exec would be lost.
static void reset_handlers(void)
{
    struct sigaction action;
    for (int number = 1; number < 32; number++) {
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            signal(number, SIG_DFL);
    }
    signal(SIGPIPE, SIG_DFL);
}

// After fork: nothing here may take a lock, as other threads of the parent may have had it.
static void become(const struct bsw_child *child, pid_t parent)
{
    enum { REPLACE = O_WRONLY | O_CREAT | O_TRUNC };
    sigset_t none;
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(126);
    if (redirect("/dev/null", O_RDONLY, STDIN_FILENO) != 0 ||
        redirect(child->out, REPLACE, STDOUT_FILENO) != 0 ||
        redirect(child->err, REPLACE, STDERR_FILENO) != 0)
        _exit(126);
    if (child->folder && chdir(child->folder) != 0) _exit(126);
    reset_handlers();
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(child->arguments[0], (char *const *)(uintptr_t)child->arguments);
    _exit(127);
}

enum bsw_status bsw_child_run(const struct bsw_child *child, int *exit_code, struct bsw_error *err)
{
    int state;
    pid_t parent = getpid(), id = fork();
    *exit_code = -1;
    if (id == 0) become(child, parent);
    if (id < 0) return bsw_fail(err, BSW_ERROR_IO, "cannot start a process: %s", strerror(errno));
    while (waitpid(id, &state, 0) < 0) {
        if (errno != EINTR)
            return bsw_fail(err, BSW_ERROR_IO, "cannot wait for a process: %s", strerror(errno));
    }
    *exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return BSW_OK;
}
