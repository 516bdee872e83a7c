#ifndef _GNU_SOURCE
#define _GNU_SOURCE // execvpe
#endif
#include "coordinator/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int is_passed_on(const struct bsw_child *child, const char *variable)
{
    static const char *const dropped[] = {
        "OMPI_COMM_",       "OMPI_UNIVERSE_",   "PMIX_", "PMI_", "PRTE_",
        "BITSWEEP_STATUS=", "BITSWEEP_STARTED="};
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++) {
        if (strncmp(variable, dropped[i], strlen(dropped[i])) == 0) return 0;
    }
    if (!child->variable) return 1;
    return strncmp(variable, child->variable, strcspn(child->variable, "=") + 1) != 0;
}

// Pointers into environ, and the child's own.
static enum bsw_status make_environment(const struct bsw_child *child, const char ***out,
                                        struct bsw_error *err)
{
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    BSW_TRY(bsw_allocate_zero(out, count + 2, sizeof **out, "environment", err));
    for (size_t i = 0; i < count; i++) {
        if (is_passed_on(child, environ[i])) (*out)[kept++] = environ[i];
    }
    if (child->variable) (*out)[kept] = child->variable;
    return BSW_OK;
}

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
static void become(const struct bsw_child *child, pid_t parent, const char **environment)
{
    enum { REPLACE = O_WRONLY | O_CREAT | O_TRUNC };
    sigset_t none;
    sigemptyset(&none);
    int death_signal = child->death_signal ? child->death_signal : SIGKILL;
    if (prctl(PR_SET_PDEATHSIG, death_signal) != 0 || getppid() != parent) _exit(126);
    if (redirect("/dev/null", O_RDONLY, STDIN_FILENO) != 0 ||
        redirect(child->out, REPLACE, STDOUT_FILENO) != 0 ||
        redirect(child->err, REPLACE, STDERR_FILENO) != 0)
        _exit(126);
    if (child->folder && chdir(child->folder) != 0) _exit(126);
    reset_handlers();
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvpe(child->arguments[0], (char *const *)(uintptr_t)child->arguments,
            (char *const *)(uintptr_t)environment);
    _exit(127);
}

enum bsw_status bsw_child_run(const struct bsw_child *child, int *exit_code, struct bsw_error *err)
{
    const char **environment;
    int state;
    pid_t parent = getpid(), id;
    *exit_code = -1;
    BSW_TRY(make_environment(child, &environment, err));
    id = fork();
    if (id == 0) become(child, parent, environment);
    int fault = errno;
    bsw_free(&environment);
    if (id < 0) return bsw_fail(err, BSW_ERROR_IO, "cannot start a process: %s", strerror(fault));
    while (waitpid(id, &state, 0) < 0) {
        if (errno != EINTR)
            return bsw_fail(err, BSW_ERROR_IO, "cannot wait for a process: %s", strerror(errno));
    }
    *exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return BSW_OK;
}
