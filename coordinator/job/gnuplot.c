// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // prctl
#endif
#include "coordinator/job/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void redirect(const char *path, int flags, int to)
{
    int fd = open(path, flags, 0666);
    if (fd < 0 || dup2(fd, to) < 0) _exit(126);
}

// After fork: nothing here may take a lock, as other threads of the parent may have had it.
static void become(const struct bsw_gnuplot *gnuplot, pid_t parent)
{
    enum { REPLACE = O_WRONLY | O_CREAT | O_TRUNC };
    sigset_t none;
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(126);
    redirect(gnuplot->in ? gnuplot->in : "/dev/null", O_RDONLY, STDIN_FILENO);
    if (gnuplot->said) redirect(gnuplot->said, REPLACE, STDERR_FILENO);
    if (gnuplot->out)
        redirect(gnuplot->out, REPLACE, STDOUT_FILENO);
    else if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        _exit(126);
    if (gnuplot->folder && chdir(gnuplot->folder) != 0) _exit(126);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(gnuplot->arguments[0], (char *const *)(uintptr_t)gnuplot->arguments);
    _exit(127);
}

enum bsw_status bsw_gnuplot_run(const struct bsw_gnuplot *gnuplot, int *is_drawn,
                                struct bsw_error *err)
{
    int state;
    pid_t parent = getpid(), id = fork();
    *is_drawn = 0;
    if (id == 0) become(gnuplot, parent);
    if (id < 0) return bsw_fail(err, BSW_ERROR_IO, "cannot start gnuplot: %s", strerror(errno));
    while (waitpid(id, &state, 0) < 0) {
        if (errno != EINTR)
            return bsw_fail(err, BSW_ERROR_IO, "cannot wait for gnuplot: %s", strerror(errno));
    }
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127) return BSW_OK;
    *is_drawn = WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (*is_drawn) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "gnuplot failed%s%s%s", gnuplot->said ? ": " : "",
                    gnuplot->said ? gnuplot->said : "", gnuplot->said ? " says why" : "");
}
