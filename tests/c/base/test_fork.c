/* Goal: every forked child distinguishes itself from its parent and from its own children. Method: real forks, whose exit status
 * is the generation that they see. */
#include "base/fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int32_t generation_of_child(int depth)
{
    int status = -1;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (0 == child)
    {
        _exit(0 == depth ? asi_fork_generation() : generation_of_child(depth - 1));
    }
    CHECK_I64(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void each_child_is_another_generation(void)
{
    CHECK_I64(asi_fork_watch(), AS_OK);
    CHECK_I64(asi_fork_watch(), AS_OK); /* counted once all the same */
    const int32_t own = asi_fork_generation();
    CHECK_I64(generation_of_child(0), own + 1);
    CHECK_I64(generation_of_child(2), own + 3);
    CHECK_I64(asi_fork_generation(), own);
}

int main(void)
{
    RUN(each_child_is_another_generation);
    return 0;
}
