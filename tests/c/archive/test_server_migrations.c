/* Goal: a migration of segments that fails or dies loses nothing, and can be repeated. Method: maintenance_rig.h, with and without
 * hard links; every message that the catalog claims is read back. Spec: 08 §9. */
#include "maintenance_rig.h"

static bool has_segment(int64_t recording_id, int64_t base)
{
    char path[AS_PATH_MAX];
    CHECK_I64(asi_segment_path(path, sizeof(path), rig.archive_dir, recording_id, base), AS_OK);
    return 0 == access(path, F_OK);
}

static void migrate_at_every_fault(bool is_head, bool can_link)
{
    open_on_failing_disk(EIO, false);
    rig.files.link = can_link ? asi_file_ops_posix()->link : NULL;
    raw_session *session = raw_connect(&rig);
    bool failed = true;
    for (int64_t n = 1; failed && n < 100; n++)
    {
        int64_t ids[2];
        as_recording head;
        as_recording tail;
        make_pair(session, (int32_t)(7300 + n), &ids[0], &ids[1]);
        asi_codec_request request = is_head ? migration_of(ids[0], ids[1]) : migration_of(ids[1], ids[0]);
        break_disk(n);
        const int32_t code = run_to_end(session, &request);
        failed = has_failed();
        disk.fail_at = 0;
        const int64_t counts[] = { read_messages(ids[0], &head), read_messages(ids[1], &tail) };
        const bool is_moved = ASI_CODEC_OK == code;
        CHECK_I64(counts[is_head ? 1 : 0], is_moved ? 3 * PER_SEGMENT + 3 : is_head ? PER_SEGMENT + 3 : 2 * PER_SEGMENT);
        CHECK_I64(counts[is_head ? 0 : 1], is_moved ? 0 : is_head ? 2 * PER_SEGMENT : PER_SEGMENT + 3);
        if (!is_moved)
        {
            CHECK(has_segment(ids[0], 2 * RIG_SEGMENT_LENGTH)); /* the empty one that a full one is followed by */
            /* And it can be tried again. */
            CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
            CHECK_I64(read_messages(request.dst_recording_id, &head), 3 * PER_SEGMENT + 3);
        }
    }
    CHECK(!failed);
    raw_close(session);
    rig_close(&rig);
    CHECK_I64(disk.open_count, 0);
}

static void a_migrate_that_fails_changes_nothing(void)
{
    migrate_at_every_fault(true, true);
    migrate_at_every_fault(false, true);
    migrate_at_every_fault(true, false);
    migrate_at_every_fault(false, false);
}

/* As a migration leaves it that died when the destination had got the bytes and the source still had them. */
static void share_segments(int64_t head, int64_t tail)
{
    as_recording from;
    CHECK_I64(read_messages(tail, &from), PER_SEGMENT + 3);
    for (int64_t base = 2 * RIG_SEGMENT_LENGTH; base < from.stop_position; base += RIG_SEGMENT_LENGTH)
    {
        char src[AS_PATH_MAX];
        char dst[AS_PATH_MAX];
        CHECK_I64(asi_segment_path(src, sizeof(src), rig.archive_dir, tail, base), AS_OK);
        CHECK_I64(asi_segment_path(dst, sizeof(dst), rig.archive_dir, head, base), AS_OK);
        CHECK(0 == unlink(dst) || ENOENT == errno);
        CHECK_I64(link(src, dst), 0);
    }
    CHECK_I64(asi_catalog_set_stop_position(rig.archive->catalog, head, from.stop_position), AS_OK);
}

static void a_migration_that_died_ties_no_recordings_together(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    int64_t head;
    int64_t tail;
    as_recording end;
    make_pair(session, 7400, &head, &tail);
    share_segments(head, tail);
    CHECK_I64(read_messages(head, &end), 3 * PER_SEGMENT + 3);

    asi_codec_request request = at(ASI_CODEC_TRUNCATE_RECORDING, tail, 3 * RIG_SEGMENT_LENGTH + FRAME);
    CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
    CHECK_I64(read_messages(tail, &end), PER_SEGMENT + 1);
    CHECK_I64(read_messages(head, &end), 3 * PER_SEGMENT + 3);
    go_on(session, head, 7400, 5);
    CHECK_I64(read_messages(head, &end), 3 * PER_SEGMENT + 8);
    go_on(session, tail, 7400, 1);
    CHECK_I64(read_messages(tail, &end), PER_SEGMENT + 2);
    request = at(ASI_CODEC_TRUNCATE_RECORDING, head, 2 * RIG_SEGMENT_LENGTH + FRAME);
    CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
    CHECK_I64(read_messages(head, &end), 2 * PER_SEGMENT + 1);
    CHECK_I64(read_messages(tail, &end), PER_SEGMENT + 2);

    /* The death came later: the source has no bytes any more, and its name of the file is still there. */
    make_pair(session, 7401, &head, &tail);
    share_segments(head, tail);
    CHECK_I64(asi_catalog_set_stop_position(rig.archive->catalog, tail, 2 * RIG_SEGMENT_LENGTH + FRAME), AS_OK);
    go_on(session, tail, 7401, 1);
    CHECK_I64(read_messages(tail, &end), 2);
    CHECK_I64(read_messages(head, &end), 3 * PER_SEGMENT + 3);

    raw_close(session);
    rig_close(&rig);
}

/* The disk is gone from call `n` on, as for an archive that is killed there. After the next start each recording has its messages,
 * also when the destination is extended first, whose files behind its end are deleted then. False: the request ended before. */
static bool migrate_and_die(bool is_head, bool is_extended, int64_t n)
{
    int64_t ids[2];
    as_recording recording;
    open_on_failing_disk(EIO, true);
    raw_session *session = raw_connect(&rig);
    make_pair(session, 7500, &ids[0], &ids[1]);
    asi_codec_request request = is_head ? migration_of(ids[0], ids[1]) : migration_of(ids[1], ids[0]);
    break_disk(n);
    (void)run_to_end(session, &request);
    const bool has_died = has_failed();
    raw_close(session);
    rig_close_archive(&rig);
    disk.fail_at = 0;
    rig_open_archive(&rig);
    session = raw_connect(&rig);
    asi_catalog_record src;
    CHECK(asi_catalog_find(rig.archive->catalog, request.recording_id, &src));
    const int64_t head = 2 * PER_SEGMENT;
    const int64_t tail = PER_SEGMENT + 3;
    const bool is_moved = src.stop_position == src.start_position;
    if (is_extended)
    {
        go_on(session, request.dst_recording_id, 7500, 1);
        CHECK_I64(read_messages(request.dst_recording_id, &recording), 1 + (is_moved ? head + tail : is_head ? tail : head));
        CHECK_I64(read_messages(request.recording_id, &recording), is_moved ? 0 : is_head ? head : tail);
    }
    else
    {
        CHECK_I64(read_messages(request.recording_id, &recording), is_moved ? 0 : is_head ? head : tail);
        CHECK(is_moved || ASI_CODEC_OK == run_to_end(session, &request));
        CHECK_I64(read_messages(request.dst_recording_id, &recording), head + tail);
    }
    raw_close(session);
    rig_close(&rig);
    return has_died;
}

static void a_migration_by_renames_that_died_is_repeated(void)
{
    for (int i = 0; i < 4; i++)
    {
        int64_t n = 1;
        while (migrate_and_die(0 == i % 2, i < 2, n))
        {
            CHECK(++n < 100);
        }
        CHECK(n > 6);
    }
}

/* A replay of the recording, which stands still because nobody reads it. */
static int64_t replay_unread(raw_session *session, int64_t recording_id, as_subscription **subscription)
{
    asi_codec_request request = replay_of(recording_id, 0, -1, "aeron:ipc", 7699);
    CHECK_I64(as_client_add_subscription(rig.client, "aeron:ipc", 7699, subscription), AS_OK);
    return raw_ask_ok(session, &request);
}

static void end_replay(raw_session *session, int64_t replay_session_id, as_subscription *subscription)
{
    asi_codec_request request = request_of(ASI_CODEC_STOP_REPLAY, AS_NULL_VALUE);
    request.replay_session_id = replay_session_id;
    raw_ask_ok(session, &request);
    UNTIL(&rig, 0 == rig.archive->uses->count[ASI_USE_REPLAYS]);
    as_subscription_close(subscription);
}

/* A replay of what was migrated away reads on. An extension of the source would put other bytes in their place. */
static void no_extension_takes_the_place_of_bytes_that_are_replayed(void)
{
    char text[256];
    char channel[256];
    int64_t head;
    int64_t tail;
    as_subscription *subscription = NULL;
    as_publication *publication = NULL;
    as_recording recording;
    rig_open(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    make_pair(session, 7600, &head, &tail);
    int64_t replay_session_id = replay_unread(session, head, &subscription);
    asi_codec_request request = migration_of(head, tail);
    CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
    request = extend_of(head, CHANNEL, 7600, true);
    snprintf(text, sizeof(text), "cannot extend recording %" PRId64 " due to a replay of bytes that it no longer has, which were "
        "migrated: stop it, or wait for its end", head);
    check_error(raw_ask(session, &request), ASI_CODEC_E_GENERIC, text);
    end_replay(session, replay_session_id, subscription);
    go_on(session, head, 7600, 3);
    CHECK_I64(read_messages(head, &recording), 3);

    /* The extension was requested before; its stream comes after the migration. */
    make_pair(session, 7601, &head, &tail);
    asi_codec_request extension = extend_of(head, CHANNEL, 7601, true);
    raw_ask_ok(session, &extension);
    replay_session_id = replay_unread(session, head, &subscription);
    request = migration_of(head, tail);
    CHECK_I64(run_to_end(session, &request), ASI_CODEC_OK);
    channel_behind(head, channel, sizeof(channel));
    raw_forget(session);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, 7601, &publication), AS_OK);
    snprintf(text, sizeof(text), "cannot extend recording %" PRId64 " due to a replay of bytes that it no longer has, which were "
        "migrated: stop it, or wait for its end: streamId=7601 channel=" CHANNEL, head);
    check_error(raw_await(session, ASI_CODEC_CONTROL_RESPONSE, extension.correlation_id), ASI_CODEC_E_GENERIC, text);
    as_publication_close(publication);
    end_replay(session, replay_session_id, subscription);
    raw_close(session);
    rig_close(&rig);
}

int main(void)
{
    RUN(a_migrate_that_fails_changes_nothing);
    RUN(a_migration_that_died_ties_no_recordings_together);
    RUN(a_migration_by_renames_that_died_is_repeated);
    RUN(no_extension_takes_the_place_of_bytes_that_are_replayed);
    return 0;
}
