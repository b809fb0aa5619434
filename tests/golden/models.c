#define _XOPEN_SOURCE 700 /* for P_tmpdir */
#include "models.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jsonl.h"

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void add(golden_models *models, const char *path) {
  if (models->n < (int)(sizeof models->path / sizeof *models->path))
    snprintf(models->path[models->n++], GOLDEN_PATH, "%s", path);
}

/* Files named tok… beside a llama2.c checkpoint are its tokenizers. */
static bool is_checkpoint(const char *path) {
  if (ends_with(path, ".gguf")) return true;
  return ends_with(path, ".bin") && strncmp(base_name(path), "tok", 3) != 0;
}

/* "X" of a path that ends in config_X.json; false if it does not. */
static bool variant_of(char out[128], const char *path) {
  const char *name = base_name(path), *begin = name + strlen("config_");
  if (strncmp(name, "config_", strlen("config_")) || !ends_with(name, ".json")) return false;
  return snprintf(out, 128, "%.*s", (int)(strlen(begin) - strlen(".json")), begin) < 128;
}

static void look_into(golden_models *models, const char *folder, int depth) {
  struct dirent **names;
  char variant[128];
  int n = scandir(folder, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char path[GOLDEN_PATH];
    int length = snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    bool usable = length < GOLDEN_PATH && names[i]->d_name[0] != '.';
    if (usable && strcmp(names[i]->d_name, "config.json") == 0) add(models, folder);
    if (usable && is_folder(path)) {
      if (depth == 0 && strcmp(names[i]->d_name, "expected") != 0) look_into(models, path, 1);
    } else if (usable && (is_checkpoint(path) || variant_of(variant, path))) {
      add(models, path);
    }
    free(names[i]);
  }
  if (n >= 0) free(names);
}

static bool is_for(const char *file, const char *variant) {
  char end[160];
  snprintf(end, sizeof end, "_%s.safetensors", variant);
  return ends_with(file, end);
}

/* Whether some expected file is for a variant alone. */
static bool has_own(const char *expected_file, const char *variant) {
  char folder[GOLDEN_PATH];
  struct dirent **names;
  bool own = false;
  snprintf(folder, sizeof folder, "%s", expected_file);
  *strrchr(folder, '/') = 0;
  int n = scandir(folder, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    own |= is_for(names[i]->d_name, variant);
    free(names[i]);
  }
  if (n >= 0) free(names);
  return own;
}

/* Leaves the models that an expected file is for. */
static void choose(golden_models *models, const char *expected_file) {
  char variant[128];
  int alone = -1, n = 0;
  for (int i = 0; i < models->n; i++)
    if (variant_of(variant, models->path[i]) && is_for(expected_file, variant)) alone = i;
  for (int i = 0; i < models->n; i++) {
    bool another = variant_of(variant, models->path[i]) && has_own(expected_file, variant);
    if (alone >= 0 ? i != alone : another) continue;
    if (n != i) memcpy(models->path[n], models->path[i], GOLDEN_PATH);
    n++;
  }
  models->n = n;
}

void golden_find_models(golden_models *out, const char *expected_file) {
  char folder[GOLDEN_PATH];
  snprintf(folder, sizeof folder, "%s", expected_file);
  for (int up = 0; up < 2; up++) *strrchr(folder, '/') = 0; /* the path is absolute */
  out->n = 0;
  look_into(out, folder, 0);
  choose(out, expected_file);
}

const char *golden_model_label(const char *path) { return base_name(path); }

bool golden_is_rounded(const char *path) {
  return ends_with(path, ".gguf") && !strstr(base_name(path), "F32");
}

/* ---- what a config.json says ---- */

/* The config.json of a folder or beside a .gguf, the caller's to free; NULL without. */
static att_json *config_of(golden *g, const char *path) {
  char config[GOLDEN_PATH];
  int folder = ends_with(path, ".gguf") ? (int)(base_name(path) - path) : (int)strlen(path);
  if (snprintf(config, sizeof config, "%.*s/config.json", folder, path) >= GOLDEN_PATH) return NULL;
  golden_case c = {.g = g, .path = config};
  size_t bytes = 0;
  char *text = golden_slurp(&c, config, &bytes);
  att_json *json = NULL;
  if (text && att_json_parse(&json, g->runtime, text, bytes, config) != ATT_OK) json = NULL;
  golden_case_free(&c);
  return json;
}

/* The same only of a .gguf. */
static att_json *config_beside(golden *g, const char *path) {
  return ends_with(path, ".gguf") ? config_of(g, path) : NULL;
}

static double number(const att_json_node *root, const char *key, double absent) {
  const att_json_node *node = att_json_member(root, key);
  return node && node->type == ATT_JSON_NUMBER ? node->number : absent;
}

static bool truth(const att_json_node *root, const char *key) {
  const att_json_node *node = att_json_member(root, key);
  return node && node->type == ATT_JSON_BOOL && node->truth;
}

static bool is_of(const att_json_node *root, const char *family) {
  const char *type = golden_member_text(root, "model_type");
  return type && strcmp(type, family) == 0;
}

bool golden_factor_is_folded(golden *g, const char *path) {
  att_json *json = config_beside(g, path);
  if (!json) return false;
  const att_json_node *root = att_json_root(json);
  bool folded = is_of(root, "t5") && truth(root, "tie_word_embeddings");
  att_json_free(json);
  return folded;
}

int64_t golden_first_position(golden *g, const char *path) {
  att_json *json = config_of(g, path);
  if (!json) return 0;
  const att_json_node *root = att_json_root(json);
  int64_t first = is_of(root, "roberta") ? (int64_t)number(root, "pad_token_id", 1) + 1 : 0;
  att_json_free(json);
  return first;
}

/* Whether the bytes of a file hold a text. */
static bool file_has(golden *g, const char *path, const char *text) {
  golden_case c = {.g = g, .path = path};
  size_t bytes = 0, n = strlen(text);
  const char *file = golden_slurp(&c, path, &bytes);
  bool found = false;
  for (size_t i = 0; file && !found && i + n <= bytes; i++) found = !memcmp(file + i, text, n);
  golden_case_free(&c);
  return found;
}

bool golden_window_is_lost(golden *g, const char *path) {
  att_json *json = config_beside(g, path);
  if (!json) return false;
  const att_json_node *root = att_json_root(json);
  bool switched = att_json_member(root, "use_sliding_window") != NULL;
  bool used =
      number(root, "sliding_window", 0) > 0 && (!switched || truth(root, "use_sliding_window"));
  att_json_free(json);
  return used && !file_has(g, path, "attention.sliding_window");
}

golden_folding golden_folding_of(golden *g, const char *path) {
  golden_folding folding = {1, false};
  att_json *json = config_beside(g, path);
  if (!json) return folding;
  const att_json_node *root = att_json_root(json);
  folding.by_layer = truth(root, "scale_attn_by_inverse_layer_idx");
  double scalar = number(root, "query_pre_attn_scalar", 0), dim = number(root, "head_dim", 0);
  if (scalar > 0 && dim > 0) folding.factor = (float)sqrt(scalar / dim);
  att_json_free(json);
  return folding;
}

/* ---- opening ---- */

static bool link_all(const char *from, const char *to, const char *config) {
  struct dirent **names;
  int n = scandir(from, &names, NULL, alphasort);
  bool fine = n >= 0;
  for (int i = 0; i < n; i++) {
    char source[GOLDEN_PATH + 256], target[GOLDEN_PATH];
    const char *name = names[i]->d_name;
    bool is_config = strcmp(name, config) == 0;
    bool wanted = ends_with(name, ".safetensors") || ends_with(name, ".index.json") || is_config;
    if (wanted) {
      snprintf(source, sizeof source, "%s/%s", from, name);
      snprintf(target, sizeof target, "%s/%s", to, is_config ? "config.json" : name);
      fine = fine && symlink(source, target) == 0;
    }
    free(names[i]);
  }
  if (n >= 0) free(names);
  return fine;
}

static void remove_folder(const char *folder) {
  struct dirent **names;
  int n = scandir(folder, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char path[GOLDEN_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    if (names[i]->d_name[0] != '.') unlink(path);
    free(names[i]);
  }
  if (n >= 0) free(names);
  rmdir(folder);
}

/* Opens a model; one of a config_X.json from a folder made for it. */
static att_status open_model(att_model **out, golden *g, const char *path,
                             const att_open_options *options) {
  char variant[128], from[GOLDEN_PATH], folder[] = P_tmpdir "/golden-XXXXXX";
  if (!variant_of(variant, path)) return att_model_open(out, g->runtime, path, options);
  snprintf(from, sizeof from, "%.*s", (int)(base_name(path) - path - 1), path);
  att_status status = ATT_IO;
  if (mkdtemp(folder) && link_all(from, folder, base_name(path)))
    status = att_model_open(out, g->runtime, folder, options);
  remove_folder(folder);
  return status;
}

static const char *format_of(const char *path) {
  if (ends_with(path, ".gguf")) return "GGUF";
  return ends_with(path, ".bin") ? "llama2.c" : "Hugging Face";
}

bool golden_timeline_open(golden_timeline *out, golden *g, const char *path, bool tokenizer,
                          int64_t context) {
  *out = (golden_timeline){0};
  if (golden_window_is_lost(g, path)) {
    golden_skip(g, "a GGUF without the window of its config.json");
    return false;
  }
  att_open_options open;
  att_open_options_init(&open);
  open.without_tokenizer = !tokenizer;
  char what[64];
  snprintf(what, sizeof what, "%s model", format_of(path));
  if (!golden_ok(g, open_model(&out->model, g, path, &open), what)) return false;
  att_session_options options;
  att_session_options_init(&options);
  options.all_logits = true;
  options.context = context;
  if (g->options.block) options.block = g->options.block;
  if (g->options.span) options.span = g->options.span;
  if (golden_ok(g, att_session_create(&out->session, out->model, &options), "session")) return true;
  golden_timeline_close(out);
  return false;
}

void golden_timeline_close(golden_timeline *timeline) {
  att_session_free(timeline->session);
  att_model_close(timeline->model);
}

bool golden_feed(golden *g, att_session *session, const int32_t *ids, int64_t n, att_view logits) {
  int64_t done = 0;
  for (int64_t i = 0; done < n; i++) {
    int64_t piece = golden_piece(g->options.chunk, i, done, n);
    if (!golden_ok(g, att_session_eval(session, ids + done, piece), "att_session_eval"))
      return false;
    att_view got = att_session_logits(session);
    att_view rows = logits.data ? att_view_slice(logits, 0, done, piece) : logits;
    if (rows.data && !golden_ok(g, att_view_copy(&rows, &got), "att_view_copy")) return false;
    done += piece;
  }
  return true;
}
