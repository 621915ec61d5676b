// A plugin of qemu-user that counts what a program executes: instructions in user space, and system calls. Unlike
// time, both hardly depend on the machine and on what else runs there, and unlike valgrind qemu runs Swift's
// concurrency. The counts go to standard error when the program ends, as one line of JSON.
//
// The interface is that of QEMU's TCG plugins, version 1 (qemu 6 and later). Debian has no header for it; what is
// used of it is declared here.
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_info;

void qemu_plugin_register_vcpu_tb_trans_cb(
    qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation, void *counter, uint64_t value);
void qemu_plugin_register_vcpu_syscall_cb(
    qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, unsigned int, int64_t, uint64_t, uint64_t, uint64_t,
                                          uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

// Inline counters are not atomic: two threads that count at once may lose a step. What is measured runs on one core.
static uint64_t instructions;
static uint64_t system_calls;

static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
  (void)id;
  enum { add_u64 = 0 };
  qemu_plugin_register_vcpu_tb_exec_inline(block, add_u64, &instructions, qemu_plugin_tb_n_insns(block));
}

static void system_call(qemu_plugin_id_t id, unsigned int vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                        uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  (void)id, (void)vcpu, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  // Outside qemu the clock is read without a system call (vdso(7)).
  if (number == SYS_clock_gettime || number == SYS_gettimeofday || number == SYS_time) return;
  __atomic_fetch_add(&system_calls, 1, __ATOMIC_RELAXED);
}

static void ended(qemu_plugin_id_t id, void *data) {
  (void)id, (void)data;
  fprintf(stderr, "{\"instructions\":%" PRIu64 ",\"system_calls\":%" PRIu64 "}\n", instructions, system_calls);
}

__attribute__((visibility("default"))) int qemu_plugin_install(
    qemu_plugin_id_t id, const struct qemu_info *info, int argument_count, char **arguments) {
  (void)info, (void)argument_count, (void)arguments;
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  qemu_plugin_register_vcpu_syscall_cb(id, system_call);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
