/* Files, pages and names of the simulated disk, shared by its calls (sim_disk_ops.c) and its faults (sim_disk.c). See
 * sim_disk.h. */
#ifndef AS_SIM_DISK_STATE_H
#define AS_SIM_DISK_STATE_H

#include "sim_disk.h"

#define SIM_DISK_ALL_SECTORS 0xFF

/* A number in [0, bound). */
int64_t sim_disk_below(sim_disk *disk, int64_t bound);

/* NULL: nothing was ever written there. */
sim_page *sim_disk_page_at(const sim_file *file, int64_t index);
sim_page *sim_disk_make_page(sim_file *file, int64_t index);
sim_file *sim_disk_make_file(sim_disk *disk);
/* Its dirty sectors reach the disk. */
void sim_disk_sync_page(sim_page *page);
/* Zeros where nothing was written; the range lies in the file. */
void sim_disk_read_pages(const sim_file *file, uint8_t *to, int64_t length, int64_t offset);

/* NULL: no such name. */
sim_entry *sim_disk_find_entry(sim_folder *folder, const char *name);
/* Makes the change in one folder. */
void sim_disk_name(sim_folder *folder, const sim_naming *naming);
/* Changes what calls see; the disk follows at the next sync of the folder, or by luck. */
void sim_disk_change_names(sim_disk *disk, const char *from, const char *to, sim_file *file);

#endif
