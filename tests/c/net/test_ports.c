/* Ports of tests: processes beside each other get different ones, all below those that the system chooses. Source: ports.h. */
#include <sys/wait.h>

#include "ports.h"

#define PROCESSES 8
#define PORTS 130 /* more than a block */

static void read_all(int fd, void *to, size_t length)
{
    for (size_t done = 0; done < length;)
    {
        const ssize_t got = read(fd, (uint8_t *)to + done, length - done);
        CHECK(got > 0);
        done += (size_t)got;
    }
}

static void processes_get_different_ports(void)
{
    static bool given[65536];
    int results[2];
    int end[2];
    pid_t children[PROCESSES];
    CHECK(0 == pipe(results) && 0 == pipe(end));
    for (int i = 0; i < PROCESSES; i++)
    {
        CHECK((children[i] = fork()) >= 0);
        if (0 == children[i])
        {
            int ports[PORTS];
            char nothing;
            close(end[1]);
            for (int k = 0; k < PORTS; k++)
            {
                ports[k] = free_port();
            }
            CHECK((ssize_t)sizeof(ports) == write(results[1], ports, sizeof(ports)));
            CHECK(0 == read(end[0], &nothing, 1)); /* its claims last as long as it does */
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++)
    {
        int ports[PORTS];
        read_all(results[0], ports, sizeof(ports));
        for (int k = 0; k < PORTS; k++)
        {
            CHECK(ports[k] >= PORTS_LOWEST && ports[k] < 32768 && (ports[k] < PORTS_NAMED || ports[k] >= PORTS_NAMED_END));
            CHECK(!given[ports[k]]);
            given[ports[k]] = true;
        }
    }
    close(end[1]);
    for (int i = 0; i < PROCESSES; i++)
    {
        int status;
        CHECK(children[i] == waitpid(children[i], &status, 0) && 0 == status);
    }
}

static void a_row_of_ports_is_in_one_block(void)
{
    for (int i = 0; i < 50; i++)
    {
        const int first = free_ports(7);
        CHECK_I64((first + 6) / PORTS_PER_BLOCK, first / PORTS_PER_BLOCK);
    }
}

int main(void)
{
    RUN(processes_get_different_ports);
    RUN(a_row_of_ports_is_in_one_block);
    return 0;
}
