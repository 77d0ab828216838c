/* Records a stream: a media driver, an archive and their client in one process, without any server beside it.
 *
 *      ./record FOLDER 1000
 *
 * publishes that many messages and ends when they are recorded in FOLDER. ../fetch_content/read.c reads them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "aeron_spark/as_archive.h"
#include "aeron_spark/as_driver.h"

#define CHANNEL "aeron:ipc?term-length=1m"
#define STREAM_ID 1001
#define TIMEOUT_NS 5000000000L

static void check(as_result result)
{
    if (AS_OK != result)
    {
        fprintf(stderr, "record: %s\n", as_error_text());
        exit(1);
    }
}

static as_driver *start_driver(const char *aeron_dir)
{
    as_driver_config *config;
    as_driver *driver;
    check(as_driver_config_open(&config));
    check(as_driver_config_set(config, "aeron.dir", aeron_dir));
    check(as_driver_config_set(config, "aeron.dir.delete.on.shutdown", "true"));
    check(as_driver_open(config, NULL, NULL, &driver));
    check(as_driver_start(driver));
    as_driver_config_close(config);
    return driver;
}

static as_archive *start_archive(const char *aeron_dir, const char *folder)
{
    as_archive_config *config;
    as_archive *archive;
    check(as_archive_config_open(&config));
    check(as_archive_config_set(config, "aeron.dir", aeron_dir));
    check(as_archive_config_set(config, "aeron.archive.dir", folder));
    check(as_archive_config_set(config, "aeron.archive.control.channel.enabled", "false")); /* IPC alone */
    check(as_archive_open(config, &archive));
    check(as_archive_start(archive));
    as_archive_config_close(config);
    return archive;
}

static int64_t publish(as_publication *publication, int64_t count)
{
    char text[32];
    as_offer_outcome outcome = { .position = 0 };
    for (int64_t i = 0; i < count; i++)
    {
        const int32_t offsets[] = { 0, snprintf(text, sizeof(text), "message %ld", (long)i) };
        const as_messages message = { .count = 1, .data = (const uint8_t *)text, .offsets32 = offsets };
        check(as_publication_offer_messages(publication, &message, TIMEOUT_NS, &outcome));
    }
    return outcome.position;
}

static int64_t wait_recorded(as_archive_client *client, const as_publication *publication, int64_t end)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    as_publication_constants of;
    int64_t recording_id;
    int64_t position = 0;
    as_publication_get_constants(publication, &of);
    check(as_archive_client_find_last_matching(client, 0, "aeron:ipc", STREAM_ID, of.session_id, &recording_id));
    while (position < end)
    {
        nanosleep(&pause, NULL);
        check(as_archive_client_recording_position(client, recording_id, &position));
    }
    return recording_id;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "recordings";
    const int64_t count = argc > 2 ? atol(argv[2]) : 1000;
    char aeron_dir[64];
    snprintf(aeron_dir, sizeof(aeron_dir), "/dev/shm/aeron-record-%d", getpid());
    as_driver *driver = start_driver(aeron_dir);
    as_archive *archive = start_archive(aeron_dir, folder);

    as_archive_client_options options;
    as_archive_client *client;
    as_publication *publication;
    as_archive_client_options_init(&options);
    options.aeron_dir = aeron_dir;
    check(as_archive_client_open(&options, &client));
    check(as_archive_client_add_recorded_publication(client, CHANNEL, STREAM_ID, &publication));
    const int64_t end = publish(publication, count);
    const int64_t recording_id = wait_recorded(client, publication, end);
    printf("recording %ld of %s: %ld messages, %ld bytes\n", (long)recording_id, folder, (long)count, (long)end);

    as_publication_close(publication);
    as_archive_client_close(client);
    as_archive_close(archive);
    as_driver_close(driver);
    return 0;
}
