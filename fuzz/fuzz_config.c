/* Any bytes as the config.json of a model. Settings that are accepted must give
 * a configuration that the rest can rely on: sizes of one and more whose
 * products do not overflow. A second pass fails an allocation. */
#include "fuzz.h"

#include "model/arch.h"

static att_status read(att_config *out, const att_runtime *runtime, const att_json_node *root) {
  const att_arch *arch;
  att_settings settings;
  ATT_TRY(att_arch_of_settings(&arch, root, "fuzz"));
  ATT_TRY(att_settings_open(&settings, runtime, "fuzz", root));
  att_config_init(out);
  att_status status = arch->read(out, &settings);
  if (status == ATT_OK) status = att_settings_finish(&settings);
  att_settings_close(&settings);
  return status == ATT_OK ? att_config_check(out, "fuzz") : status;
}

static void check(const att_config *config) {
  fuzz_assert(config->layers >= 1 && config->layers <= 10000);
  fuzz_assert(config->heads % config->kv_heads == 0);
  for (int slot = 0; slot < ATT_SLOT_COUNT; slot++) {
    if (!att_slot_exists(config, slot)) continue;
    int64_t rows = att_config_size(config, att_slots[slot].rows), count;
    int64_t columns = att_config_size(config, att_slots[slot].columns);
    fuzz_assert(rows >= 1 && columns >= 1);
    fuzz_assert(slot != ATT_SLOT_TOKENS || att_mul_checked(&count, rows, columns));
  }
  fuzz_assert(att_config_scale(config, config->layers - 1) != 0);
}

static void try(const att_runtime *runtime, const uint8_t *data, size_t bytes) {
  att_json *json;
  att_config config;
  if (att_json_parse(&json, runtime, (const char *)data, bytes, "fuzz") != ATT_OK) return;
  if (read(&config, runtime, att_json_root(json)) == ATT_OK)
    check(&config);
  else
    fuzz_assert(att_message()[0] != 0);
  att_json_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  fuzz_memory memory = {.fail_after = -1};
  att_runtime runtime = {.allocator = fuzz_allocator(&memory)};
  try(&runtime, data, bytes);
  fuzz_assert(memory.live == 0);
  memory.fail_after = (int64_t)(bytes % 4);
  try(&runtime, data, bytes);
  fuzz_assert(memory.live == 0);
  return 0;
}
