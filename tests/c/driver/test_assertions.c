/* A false assertion ends the process and says where: in a child, whose end and text are compared. Also what some of the product's
 * assertions stand for: one consumer of a command queue, states that only go forward. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "check.h"
#include "driver/ctl/ipc.h"
#include "driver/queues/command_queue.h"

/* Runs `fails` in a child and checks that it aborts with a text that has `text`. */
static void check_aborts(void (*fails)(void), const char *text)
{
    int pipe_ends[2];
    CHECK_I64(pipe(pipe_ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (0 == child)
    {
        dup2(pipe_ends[1], STDERR_FILENO);
        fails();
        _exit(0);
    }
    close(pipe_ends[1]);
    char said[512] = { 0 };
    int64_t length = 0;
    for (ssize_t got; (got = read(pipe_ends[0], said + length, sizeof(said) - 1 - (size_t)length)) > 0;)
    {
        length += got;
    }
    close(pipe_ends[0]);
    int status;
    CHECK_I64(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && SIGABRT == WTERMSIG(status));
    CHECK(NULL != strstr(said, "aeron_spark bug: ") && NULL != strstr(said, text));
}

static void fail_plainly(void)
{
    volatile int two = 2;
    AS_ASSERT(3 == two);
}

static void move_backward(void)
{
    asi_ctl_publication_state state = ASI_PUBLICATION_LINGER;
    asi_ctl_publication_enter(&state, ASI_PUBLICATION_DRAINING);
}

static void skip_linger(void)
{
    asi_ctl_publication_state state = ASI_PUBLICATION_DRAINING;
    asi_ctl_publication_enter(&state, ASI_PUBLICATION_DONE);
}

static void take_while_taking(void)
{
    asi_command_queue queue;
    int64_t message = 1;
    CHECK_I64(asi_command_queue_open(&queue, 2, sizeof(message)), AS_OK);
    CHECK(asi_command_queue_put(&queue, &message));
    queue.is_taking = true; /* as another consumer inside a take sets it */
    (void)!asi_command_queue_take(&queue, &message);
}

static void false_assertions_abort(void)
{
    check_aborts(fail_plainly, "3 == two is false at ");
    check_aborts(move_backward, "ipc.h:");
    check_aborts(skip_linger, "ipc.h:");
    check_aborts(take_while_taking, "is_taking");
}

static void moves_in_order_pass(void)
{
    static const uint32_t MOVES[] = { 1U << 1 | 1U << 2, 1U << 2, 0 };
    AS_ASSERT_MOVE(MOVES, 0, 1);
    AS_ASSERT_MOVE(MOVES, 1, 2);
    asi_ctl_publication_state state = ASI_PUBLICATION_ACTIVE;
    asi_ctl_publication_enter(&state, ASI_PUBLICATION_LINGER); /* revoked */
    asi_ctl_publication_enter(&state, ASI_PUBLICATION_DONE);
    CHECK_I64(state, ASI_PUBLICATION_DONE);
}

int main(void)
{
    RUN(false_assertions_abort);
    RUN(moves_in_order_pass);
    return 0;
}
