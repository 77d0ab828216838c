/* Goal: a session has one image, however closely a subscription is closed and added again while SETUPs arrive. Method: memory_rig.h;
 * the test plays the publishers' driver. So many publishers begin at once that conductor and receiver take several cycles for each
 * other's commands, and one of them sends its SETUP in each cycle. Spec: 04 §8.4. */
#include "memory_rig.h"
#include "wire/frame.h"

#define STREAM 1001
#define SESSION 4711
#define OTHERS 64
#define CHANNEL "aeron:udp?endpoint=127.0.0.1:24000"

static void send_setup(memory_rig *m, int32_t session_id)
{
    const asi_setup_frame setup = { .prefix = { .frame_length = sizeof(setup), .type = ASI_FRAME_SETUP }, .session_id = session_id,
        .stream_id = STREAM, .initial_term_id = 7, .active_term_id = 7, .term_length = AS_TERM_MIN_LENGTH, .mtu_length = 1408 };
    memory_rig_send(m, &setup, sizeof(setup), 24000);
}

/* The others come first, so that the conductor gets to the session's SETUP after several cycles. */
static void send_setups(memory_rig *m)
{
    for (int32_t i = 0; i < OTHERS; i++)
    {
        send_setup(m, i);
    }
    send_setup(m, SESSION);
}

static void subscribe(memory_rig *m, int64_t registration_id)
{
    rig_send_add(&m->rig, ASI_CMD_ADD_SUBSCRIPTION, 1, registration_id, STREAM, CHANNEL);
}

static int images_of(memory_rig *m, int64_t subscription_id)
{
    int images = 0;
    while (rig_receive(&m->rig))
    {
        asi_rsp_available_image image;
        memcpy(&image, m->rig.last.bytes, sizeof(image));
        images += ASI_RSP_AVAILABLE_IMAGE == m->rig.last.type_id && SESSION == image.session_id &&
            subscription_id == image.subscription_registration_id ? 1 : 0;
    }
    return images;
}

/* The receiver forgets the SETUP that is on its way to the conductor, and asks for the session once more. Bytes that came before
 * the second image would be in the first one, too. */
static void who_subscribes_again_while_setups_wait(memory_rig *m)
{
    subscribe(m, 10);
    memory_rig_cycles(m, 3);
    send_setups(m);
    rig_cycle(&m->rig);
    rig_send_remove(&m->rig, ASI_CMD_REMOVE_SUBSCRIPTION, 1, 900, 10);
    subscribe(m, 11);
    for (int i = 0; i < 40; i++)
    {
        send_setup(m, SESSION);
        rig_cycle(&m->rig);
    }
    CHECK_I64(images_of(m, 11), 1);
    CHECK_I64(rig_system(&m->rig, ASI_SYSTEM_ERRORS), 0);
}

int main(void)
{
    RUN_IN_MEMORY_RIG(who_subscribes_again_while_setups_wait);
    return 0;
}
